"""Texts for comparing tokenizers: sentences in many scripts, and others made to hurt.

Nothing of it is anybody's text: the sentences are written for this file, the rest is drawn from
the ranges of Unicode with a fixed seed.
"""
import random
import unicodedata

SENTENCES = [
    "The mill's wheel doesn't turn; we'll wait until it's 12:45, won't we?",
    "In 2024 the river carried 1,234.56 m³ of water — 30% more than before!",
    "Zwölf Boxkämpfer jagten Viktor quer über den großen Sylter Deich.",
    "L'été dernier, j'ai vu où naît la Seine : un filet d'eau près d'un chêne.",
    "El molino está junto al río; ¿quién lo cuida? ¡Nadie, señor!",
    "A água move a roda, e a roda move a mó do moinho.",
    "Młyn stoi nad rzeką, żółte liście płyną z prądem.",
    "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "Değirmenin suyu nereden geliyor? İstanbul'da ığdır yok.",
    "Вода крутит колесо, а колесо — жернова старой мельницы.",
    "Їжак п'є воду з річки біля ґанку.",
    "Το νερό κινεί τον τροχό· ο τροχός κινεί τη μυλόπετρα.",
    "המים מסובבים את הגלגל, והגלגל את אבני הריחיים.",
    "الماء يدير العجلة، والعجلة تدير حجر الرحى ١٢٣.",
    "آب چرخ را می‌چرخاند و چرخ سنگ آسیاب را.",
    "पानी पहिये को घुमाता है और पहिया चक्की को १२३।",
    "জল চাকা ঘোরায়, আর চাকা ঘোরায় জাঁতা।",
    "தண்ணீர் சக்கரத்தைச் சுழற்றுகிறது.",
    "నీరు చక్రాన్ని తిప్పుతుంది.",
    "น้ำหมุนกังหันแล้วกังหันก็หมุนโม่หิน",
    "ទឹកបង្វិលកង់",
    "水推动水车,水车带动石磨。今天是2024年5月17日!",
    "水車は水で回り、石臼を動かします。カタカナとーひらがな。",
    "물이 바퀴를 돌리고 바퀴가 맷돌을 돌린다.",
    "წყალი ატრიალებს ბორბალს.",
    "Ջուրը պտտեցնում է անիվը:",
    "ውሃ መንኰራኵሩን ያዞራል።",
    "Nước làm quay bánh xe, bánh xe làm quay cối đá.",
    "for (size_t i = 0; i < n; ++i) { sum += a[i] * b[i]; }  // inner product",
    "def f(x):\n\treturn {'a': [1, 2, 3], \"b\": x ** 2}\n\n",
    "https://example.org/path?q=a%20b&x=1#top me@example.org C:\\Temp\\x.txt",
    "😀 👩‍👩‍👧‍👦 🇩🇪🇫🇷 👍🏽 ❤️ ☺ ⚠️ 1️⃣",
    "ﬁne ﬂow ｆｕｌｌ　ｗｉｄｔｈ ①②③ ½ ㎏ Ⅷ ª º ℃ ™",
    "e\u0301 a\u0308o\u0302\u0323 \u1100\u1161\u11a8 \u0958 \u2126 \u212b",
    "<s> [CLS] </s> <unk> [MASK] [SEP] <pad> <0x41> ▁ Ġ ## @@ </w>",
    "don't DON'T I'M we'Ve they'll he'd O'Neill 'tis rock'n'roll",
    "do not go , he said . Really ? Yes ! I 'm here n't 's 've",
]


def adversarial(rng):
    spaces = [" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u2003", "\u3000", "\u200b", "\u2028", "\u0085",
              "\ufeff", "\u180e", "\u1680"]
    texts = ["", " ", "  ", "\n", "\n\n\n", "\t \t", "\u00a0", "a", " a", "a ", "  a  ", "\u0000", "a\u0000b",
             "!!!!!!", "......", "'", "''", "us" * 100, "A" * 300, " " * 100, "\n" * 50, "1" * 60,
             "▁", "▁▁", " ▁ ", "▁a", "Ġ", "##a", "a##b", "�", "\U0010ffff", "\ud7ff", "<s>", "</s>", "a<s>b",
             " <s> ", "<mask>", "x <mask> y", "x<mask>y", "[CLS]", "abc [MASK] def", "[MASK]abc"]
    for space in spaces:
        texts += [space, f"a{space}b", f"{space}a", f"a{space}", f"a{space}{space}b{space}"]
    for _ in range(120):
        parts = [rng.choice(rng.choice(SENTENCES).split(" ")) for _ in range(rng.randint(1, 6))]
        texts.append("".join(p + rng.choice(spaces + [""]) for p in parts))
    return texts


def assigned():
    # Characters that all know alike: of Unicode 3.2. (The library's tables have several ages.)
    return [c for c in map(chr, range(0x20, 0x30000))
            if unicodedata.ucd_3_2_0.category(c) not in ("Cn", "Cs", "Co")]


def corpus(lines, seed=1):
    rng = random.Random(seed)
    texts = list(SENTENCES) + adversarial(rng)
    characters = assigned()
    blocks = [characters[i:i + 96] for i in range(0, len(characters), 96)]
    while len(texts) < lines:
        kind = rng.random()
        if kind < 0.35:
            words = [w for s in rng.sample(SENTENCES, 3) for w in s.split(" ")]
            rng.shuffle(words)
            texts.append(" ".join(words[:rng.randint(1, 20)]))
        elif kind < 0.7:
            block = rng.choice(blocks)
            texts.append("".join(rng.choice(block) if rng.random() < 0.85 else " "
                                 for _ in range(rng.randint(1, 40))))
        else:
            texts.append("".join(rng.choice(characters) if rng.random() < 0.8 else rng.choice(" \n.a1")
                                 for _ in range(rng.randint(1, 30))))
    return texts[:lines]
