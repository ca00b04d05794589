// See tokenizer_texts.h.
#include "text/tokenizer_texts.h"

namespace headrace {

const std::vector<std::string>& tokenizer_texts() {
  static const std::vector<std::string> texts = {
      "",
      " ",
      "  two  spaces ",
      "\n\n",
      "\t\tx",
      "a\n b\n  c",
      "0123456789 3.14159 1,000,000",
      "AAAAAAAAAAAAAAAAAAAAAAAA",
      "                        x",
      "!!!!!! ...... ------",
      "CamelCase snake_case kebab-case ALLCAPS",
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
      "آب چرخ را می\xE2\x80\x8C"
      "چرخاند و چرخ سنگ آسیاب را.",
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
      "😀 👩\xE2\x80\x8D"
      "👩\xE2\x80\x8D"
      "👧\xE2\x80\x8D"
      "👦 🇩🇪🇫🇷 👍\xF0\x9F\x8F\xBD"
      " ❤\xEF\xB8\x8F"
      " ☺ ⚠\xEF\xB8\x8F"
      " 1\xEF\xB8\x8F"
      "\xE2\x83\xA3"
      "",
      "ﬁne ﬂow ｆｕｌｌ　ｗｉｄｔｈ ①②③ ½ ㎏ Ⅷ ª º ℃ ™",
      "e\xCC\x81"
      " a\xCC\x88"
      "o\xCC\x82"
      "\xCC\xA3"
      " \xE1\x84\x80"
      "\xE1\x85\xA1"
      "\xE1\x86\xA8"
      " \xE0\xA5\x98"
      " \xE2\x84\xA6"
      " \xE2\x84\xAB"
      "",
      "<s> [CLS] </s> <unk> [MASK] [SEP] <pad> <0x41> ▁ Ġ ## @@ </w>",
      "don't DON'T I'M we'Ve they'll he'd O'Neill 'tis rock'n'roll",
      "do not go , he said . Really ? Yes ! I 'm here n't 's 've",
  };
  return texts;
}

}  // namespace headrace
