"""Figures as languages beside English write them: their units, scales and words, and the comma before a fraction.

The languages are those in which verdicts are read (verdicts.yaml); of units also Italian, Portuguese and Russian.
"""

from __future__ import annotations

import re

_WORDS: dict[float, str] = {
    1: "ein eins", 2: "zwei deux dos dós", 3: "drei trois tres trés", 4: "vier quatre cuatro",
    5: "fünf fuenf cinq cinco", 6: "sechs six seis séis", 7: "sieben sept siete", 8: "acht huit ocho",
    9: "neun neuf nueve", 10: "zehn dix diez", 11: "elf onze once", 12: "zwölf zwoelf douze doce", 13: "treize trece",
    14: "quatorze catorce", 15: "quinze quince", 16: "sechzehn seize", 17: "siebzehn",
    20: "zwanzig vingt veinte veinti", 30: "dreißig dreissig trente treinta", 40: "vierzig quarante cuarenta",
    50: "fünfzig fuenfzig cinquante cincuenta", 60: "sechzig soixante sesenta", 70: "siebzig septante setenta",
    80: "achtzig quatre-vingts quatre-vingt huitante ochenta", 90: "neunzig nonante noventa",
    100: "hundert cents cent cientos ciento cien", 500: "quinientos", 700: "setecientos", 900: "novecientos",
    1e3: "tausend mille mil", 1e6: "millionen millions million millones millón",
    1e9: "milliarden milliarde milliards milliard", 0.5: "einhalb",
}  # fmt: skip
_JOINS = r"[\s-]{0,3}(?:(?:und|et|y)[\s-]{0,3})?"
_HALVES = {
    "anderthalb": 1.5,
    **dict.fromkeys(("halbe", "halben", "halber", "halbes", "demi", "demie", "medio", "media"), 0.5),
}
_SHARES = {
    **dict.fromkeys(("hälfte", "moitié", "mitad"), 1 / 2),
    **dict.fromkeys(("drittel", "tiers", "tercios", "tercio"), 1 / 3),
    **dict.fromkeys(("viertel", "quarts", "quart", "cuartos", "cuarto"), 1 / 4),
}
_TIMES = {"zwei": 2.0, "deux": 2.0, "dos": 2.0, "drei": 3.0, "trois": 3.0, "tres": 3.0}
_HAN = {**{digit: float(value) for value, digit in enumerate("零一二三四五六七八九")}, "〇": 0.0, "两": 2.0, "兩": 2.0}
_HAN_TENS, _HAN_MANY = {"十": 1e1, "百": 1e2, "千": 1e3}, {"万": 1e4, "萬": 1e4, "亿": 1e8, "億": 1e8}
SCALES = {
    "千": 1e3, "百万": 1e6, **_HAN_MANY, "tausend": 1e3, "mille": 1e3, "mil": 1e3, "тысяч": 1e3, "тыс": 1e3,
    **dict.fromkeys(("millionen", "millions", "millones", "миллионов", "млн"), 1e6),
    **dict.fromkeys(("milliarden", "milliards"), 1e9),
}  # fmt: skip
_UNITS: dict[tuple[str, float], str] = {
    ("seconds", 1e-3): "millisekunden millisecondes milisegundos миллисекунд мс 毫秒 ミリ秒",
    ("seconds", 1.0): "sek sekunde sekunden seconde secondes segundo segundos secondi секунда секунды секунд сек 秒",
    ("seconds", 60.0): "minuten minuto minutos minuti минуты минут мин 分钟 分鐘 分間",
    ("seconds", 3600.0): "std stunde stunden heure heures hora horas ora ore час часа часов 小时 小時 時間",
    ("seconds", 86400.0): "tag tage tagen jour jours día días dia dias giorno giorni день дня дней 天 日間",
    ("seconds", 604800.0): "woche wochen semaine semaines semana semanas settimana settimane неделя недели недель 周 "
                           "週間",
    ("bytes", 1e6): "МБ", ("bytes", 1e9): "ГБ", ("bytes", 1e12): "ТБ", ("bytes", 2.0**20): "МиБ",
    ("bytes", 2.0**30): "Gio ГиБ",
    ("usd", 1.0): "dólar dólares dolares dollari доллар доллара долларов 美元 ドル",
    ("eur", 1.0): "€ eur euro euros евро 欧元 ユーロ",
    ("fraction", 0.01): "prozent pour_cent por_ciento процентов パーセント",
    ("rate", 1.0): "token/s token/sek tokens_pro_sekunde token_pro_sekunde tokens_par_seconde jetons/s "
                   "jetons_par_seconde tokens_por_segundo tokens_al_segundo токенов/с токенов_в_секунду tokens/秒 "
                   "トークン/秒",
}  # fmt: skip
UNITS = {name.replace("_", " ").lower(): kind for kind, names in _UNITS.items() for name in names.split()}

_BY_WORD = {word: value for value, words in _WORDS.items() for word in words.split()}
_WORD = "|".join(sorted(_BY_WORD, key=len, reverse=True))
_ONE_WORD = re.compile(_WORD, re.IGNORECASE)
# No number is longer; without an end each word of a long row would be the beginning of another search.
NUMBER = rf"(?:{_WORD})(?:{_JOINS}(?:{_WORD})){{0,11}}"
HALF = "|".join(_HALVES)
# What says that a number before it is how many times as much.
TIMES = r"fach\w*|[\s-]?mal\s+so\b|\s+(?:fois|veces)\b"
MULTIPLES = {
    **dict.fromkeys(("doppelt so", "doppelte", "doppelten", "verdoppelt", "le double", "deux fois", "el doble"), 2.0),
    **dict.fromkeys(("duplica", "dos veces"), 2.0), **dict.fromkeys(("le triple", "el triple", "triplica"), 3.0),
    **dict.fromkeys(("halbiert", "halb so"), 0.5),
}  # fmt: skip
SHARE = rf"(?:(?:{'|'.join(_TIMES)})\s+)?(?:{'|'.join(_SHARES)})"
HAN = rf"(?:[{''.join([*_HAN, *_HAN_TENS, *_HAN_MANY])}]{{1,16}}|半)"
HAN_SHARE = rf"[{''.join([*_HAN, *_HAN_TENS])}]{{1,8}}分之[{''.join([*_HAN, *_HAN_TENS])}]{{1,8}}"


def number(words: str) -> float:
    """'zweiundvierzig', 'quatre-vingt-dix', 'tres mil' and 'anderthalb' as a number."""
    if words.lower() in _HALVES:
        return _HALVES[words.lower()]
    total, group = 0.0, 0.0
    for match in _ONE_WORD.finditer(words):
        value = _BY_WORD[match[0].lower()]
        if value >= 1e3:
            total, group = total + max(group, 1.0) * value, 0.0
        elif value == 100.0:
            group = max(group, 1.0) * value
        else:
            group += value
    return total + group


def share(words: str) -> float:
    """'zwei Drittel', 'la moitié' and '三分之二' as a part of one."""
    below, is_han, above = words.partition("分之")
    if is_han:
        return han(above) / han(below) if han(below) else 0.0
    *times, part = words.lower().split()
    return (_TIMES[times[0]] if times else 1.0) * _SHARES[part]


def han(digits: str) -> float:
    """'十二', '三千五百' and '半' as a number."""
    if digits == "半":
        return 0.5
    if not any(digit in _HAN_TENS or digit in _HAN_MANY for digit in digits):
        return float("".join(str(int(_HAN[digit])) for digit in digits))
    total, group, last = 0.0, 0.0, 0.0
    for digit in digits:
        if digit in _HAN:
            last = _HAN[digit]
        elif digit in _HAN_TENS:
            group, last = group + (last or 1.0) * _HAN_TENS[digit], 0.0
        else:
            total, group, last = total + ((group + last) or 1.0) * _HAN_MANY[digit], 0.0, 0.0
    return total + group + last


# Blanks that do not break group the digits of a number.
_BLANKS = "\u00a0\u202f\u2009"
_GROUPED = re.compile(rf"(?<=\d)[{_BLANKS}](?=\d{{3}}(?!\d))")
_NUMBER = re.compile(rf"(?<![\d.,])(?:\d{{1,3}}(?:[. {_BLANKS}]\d{{3}})+|\d+)(?:,\d+)?(?![\d.,]\d)")
_TO_ENGLISH = str.maketrans({",": ".", **dict.fromkeys(f". {_BLANKS}", ",")})


def in_english(text: str, unit: str) -> str:
    """The text with its numbers as English writes them, each character in its place: where a number of one or two
    digits behind a comma has a unit, commas are the points of all, and points and blanks group their digits."""
    if re.search(rf"\d,\d{{1,2}}\s?(?:{unit})(?![\w/])", text, re.IGNORECASE):
        return _NUMBER.sub(lambda match: match[0].translate(_TO_ENGLISH), text)
    return _GROUPED.sub(",", text)
