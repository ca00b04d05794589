#!/usr/bin/env python3
"""Writes text for the tokenizer benchmark: the same bytes for the same arguments.

english: words of natural frequency (Zipf), half of them syllable by syllable made up, so that no
tokenizer profits from a text repeated over and over; sentences, numbers, names, line breaks.
mixed: paragraphs of English, Cyrillic, Greek, Chinese, Japanese, Korean, Arabic, emoji and code.

Usage: bench/make_text.py {english,mixed} NUM_BYTES OUT_FILE
"""
import argparse
import random

COMMON = """the of and to in a is that it was for on are as with his they at be this from have or by one
had not but what all were when we there can an your which their said if do will each about how up out
them then she many some so these would other into has more her two like him see time could no make than
first been its who now people my made over did down only way find use may water long little very after
words called just where most know get through back much before go good new write our used me man too
any day same right look think also around another came come work three word must because does part even
place well such here take why things help put years different away again off went old number great tell
men say small every found still between name should home big give air line set own under read last never
us left end along while might next sound below saw something thought both few those always looked show
large often together asked house world going want school important until form food keep children feet
land side without boy once animals life enough took sometimes four head above kind began almost live page
got earth need far hand high year mother light parts country father let night following picture being
study second eyes soon times story boys since white days ever paper hard near sentence better best across
during today others however sure means knew try told young miles sun ways thing whole hear example heard
several change answer room sea against top turned learn point city play toward five using himself usually
""".split()
ONSETS = "b bl br c ch cl cr d dr f fl fr g gl gr h j k l m n p pl pr qu r s sc sh sl sm sp st str t th tr v w".split()
VOWELS = "a ai e ea ee i ia o oa oo ou u y".split()
CODAS = ["", "", "", "ck", "d", "l", "m", "n", "nd", "ng", "nt", "r", "rd", "rt", "s", "st", "t", "ve", "x"]
ENDINGS = ["", "", "", "s", "ed", "ing", "er", "ly", "tion", "ment", "able", "ness"]


def made_up_word(rng):
    word = "".join(rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS)
                   for _ in range(rng.choice((1, 1, 2, 2, 3))))
    return word + rng.choice(ENDINGS)


class English:
    def __init__(self, rng):
        self.rng = rng
        # Frequency falls with rank, as in real text; the tail is long.
        self.words = COMMON + [made_up_word(rng) for _ in range(60000)]
        weights = [1 / (rank + 8) for rank in range(len(self.words))]
        self.stream = iter(())
        self.weights = weights

    def word(self):
        try:
            return next(self.stream)
        except StopIteration:
            self.stream = iter(self.rng.choices(self.words, self.weights, k=20000))
            return next(self.stream)

    def sentence(self):
        rng = self.rng
        parts = [self.word().capitalize()]
        for _ in range(rng.randint(5, 24)):
            pick = rng.random()
            if pick < 0.02:
                parts.append(str(rng.randint(1, 99999)))
            elif pick < 0.05:
                parts.append(self.word().capitalize())
            elif pick < 0.06:
                parts.append(self.word() + rng.choice(("'s", "'t", "'re", "'ll")))
            else:
                parts.append(self.word())
            if rng.random() < 0.07:
                parts[-1] += rng.choice((",", ",", ";", " -", ":"))
        return " ".join(parts) + rng.choice((".", ".", ".", "?", "!", '."'))

    def paragraph(self):
        return " ".join(self.sentence() for _ in range(self.rng.randint(2, 7))) + "\n\n"


def script(rng, ranges, low, high, space):
    words = []
    for _ in range(rng.randint(20, 80)):
        a, b = rng.choice(ranges)
        words.append("".join(chr(rng.randint(a, b)) for _ in range(rng.randint(low, high))))
    return space.join(words) + "\n"


def code(rng, english):
    lines = []
    for _ in range(rng.randint(4, 12)):
        indent = "    " * rng.randint(0, 4)
        name, other = english.word(), english.word()
        lines.append(rng.choice((
            f"{indent}for (int {name[:2]} = 0; {name[:2]} < {rng.randint(1, 4096)}; ++{name[:2]}) {{",
            f"{indent}return {name}.{other}({rng.randint(0, 9)}, \"{other}\");",
            f"{indent}def {name}_{other}(self, {other}=None):  # {english.word()}",
            f"{indent}if {name} != 0x{rng.randint(0, 65535):04x} and not {other}[{rng.randint(0, 99)}]:",
        )))
    return "\n".join(lines) + "\n"


def mixed(rng, english):
    kinds = (
        lambda: english.paragraph(),
        lambda: script(rng, [(0x430, 0x44F)], 2, 11, " "),
        lambda: script(rng, [(0x3B1, 0x3C9)], 2, 10, " "),
        lambda: script(rng, [(0x4E00, 0x6FFF)], 3, 15, "，"),
        lambda: script(rng, [(0x3042, 0x3093), (0x30A2, 0x30F3), (0x4E00, 0x5FFF)], 1, 6, ""),
        lambda: script(rng, [(0xAC00, 0xD7A3)], 1, 5, " "),
        lambda: script(rng, [(0x627, 0x64A)], 2, 8, " "),
        lambda: script(rng, [(0x1F600, 0x1F64F), (0x1F680, 0x1F6C5)], 1, 3, " "),
        lambda: code(rng, english),
    )
    return rng.choice(kinds)()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=("english", "mixed"))
    parser.add_argument("num_bytes", type=int)
    parser.add_argument("out_file")
    args = parser.parse_args()
    rng = random.Random(2024)
    english = English(rng)
    written = 0
    with open(args.out_file, "w", encoding="utf-8", newline="") as out:
        while written < args.num_bytes:
            part = english.paragraph() if args.kind == "english" else mixed(rng, english)
            out.write(part)
            written += len(part.encode("utf-8"))


if __name__ == "__main__":
    main()
