"""Days, months and deadlines in other languages: 'vendredi soir au plus tard' as 'by friday evening'."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from agent.offline.dates import DAYS, MONTHS

_WHEN = (
    rf"(?:(?:next )?(?:{'|'.join(DAYS)}|tomorrow|today)(?: (?:morning|noon|evening|\d{{1,2}}:\d\d))?|tonight|"
    rf"next week|"
    rf"end of (?:week|month|year)|\d{{1,2}} (?:{'|'.join(MONTHS)})\b|\d{{4}}-\d\d-\d\d)"
)


@dataclass(frozen=True)
class _Calendar:
    """Regular expressions of one language: `before` stands in front of a day, `latest` behind it."""

    days: str
    months: str
    morning: str
    noon: str
    evening: str
    clock: str
    before: str
    latest: str
    others: tuple[tuple[str, str], ...]


_CALENDARS = {
    "de": _Calendar(
        days="montag dienstag mittwoch donnerstag freitag (?:samstag|sonnabend) sonntag",
        months="januar februar m[äa]rz april mai juni juli august september oktober november dezember",
        morning=r"fr[üu]h|morgen|vormittag",
        noon="mittag",
        evening="abend|nachmittag|nacht",
        clock=r"uhr",
        before=r"(?:sp[äa]testens |bis |vor |zu(?:m|r) |am |(?:der|die|den|dem|diesen) )*(?:sp[äa]testens|bis|vor)"
        r"(?: am| zum| zur| der| dem| den| diesen)*",
        latest=r"sp[äa]testens",
        others=(
            (r"\bheute (?:abend|nacht)\b", "tonight"), (r"\bheute\b", "today"),
            (r"(?<!guten )\bmorgen\b", "tomorrow"), (r"\bn[äa]chste[rnms]? woche\b", "next week"),
            (r"\bn[äa]chste[rnms]? (?=\w+day\b)", "next "),
            (r"\b(?:zum )?wochenende\b|\bende (?:der|dieser) woche\b", "end of week"),
            (r"\bmonatsende\b|\bende (?:des|dieses) monats\b", "end of month"),
            (r"\bjahresende\b|\bende (?:des|dieses) jahres\b", "end of year"),
        ),
    ),
    "es": _Calendar(
        days="lunes martes mi[ée]rcoles jueves viernes s[áa]bado domingo",
        months="enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        morning=r"(?:por|a) la ma[ñn]ana|temprano",
        noon=r"(?:a|al) (?:el )?mediod[íi]a",
        evening=r"(?:por|a) la (?:noche|tarde)",
        clock=r"h|hs|horas",
        before=r"(?:para|antes del?|hasta|a m[áa]s tardar)(?: el| este| esta| la| del?)*",
        latest=r"(?:como (?:muy tarde|m[áa]ximo|tope)|a m[áa]s tardar)",
        others=(
            (r"\besta noche\b", "tonight"), (r"\bhoy\b", "today"), (r"\bma[ñn]ana\b", "tomorrow"),
            (r"\b(?:la )?(?:pr[óo]xima semana|semana que viene)\b", "next week"),
            (r"\b(?:el )?(?:fin|final) de (?:la |esta )?semana\b", "end of week"),
            (r"\b(?:fin|final(?:es)?) de(?:l)? (?:este )?mes\b", "end of month"),
            (r"\b(?:fin|final(?:es)?) de(?:l)? (?:este )?a[ñn]o\b", "end of year"),
        ),
    ),
    "fr": _Calendar(
        days="lundi mardi mercredi jeudi vendredi samedi dimanche",
        months="janvier f[ée]vrier mars avril mai juin juillet ao[ûu]t septembre octobre novembre d[ée]cembre",
        morning=r"matin",
        noon="midi",
        evening=r"soir|apr[èe]s[- ]midi",
        clock=r"h|heures",
        before=r"(?:d'ici|avant|pour|jusqu'(?:à|au|a)|au plus tard)(?: [àa]| au| le| la| ce| cette| les)*",
        latest=r"(?:au plus tard|max(?:imum)?|dernier d[ée]lai|grand max)",
        others=(
            (r"\b(?:ce soir|cette nuit)\b", "tonight"), (r"\baujourd'hui\b", "today"), (r"\bdemain\b", "tomorrow"),
            (r"\b(?:la )?semaine prochaine\b", "next week"),
            (r"\b(?:la )?fin (?:de (?:la |cette )?semaine)\b|\b(?:le |ce )?week-?end\b", "end of week"),
            (r"\b(?:la )?fin (?:du|de|de ce) mois\b", "end of month"),
            (r"\b(?:la )?fin (?:de l'|d')ann[ée]e\b", "end of year"),
        ),
    ),
}  # fmt: skip


@cache
def deadlines(language: str) -> tuple[tuple[str, str], ...]:
    """(pattern, English) for the days and deadlines of a language, in order; none where they are not known."""
    words = _CALENDARS.get(language)
    if words is None:
        return ()
    # Behind the ends of "friday" and "tomorrow".
    after_day = r"(?<=day|row)[- ]?(?:{})\b"
    times = {"morning": words.morning, "noon": words.noon, "evening": words.evening}
    rows: list[tuple[str, str]] = [
        (rf"\b{day}s?(?=\b|{words.morning}|{words.noon}|{words.evening})", plain)
        for day, plain in zip(words.days.split(), DAYS, strict=True)
    ]
    rows += [(after_day.format(pattern), f" {time}") for time, pattern in times.items()]
    rows += [*words.others]
    rows += [(after_day.format(f" ?{pattern}"), f" {time}") for time, pattern in times.items()]
    rows += [
        (rf"(?<=day|row),? (?:à |a las |um |vers )?(\d{{1,2}})\s?(?:{words.clock})\b", r" \1:00"),
        *(
            (rf"\b(\d{{1,2}})(?:er|\.)?(?: de)? {month}\b", rf"\1 {plain}")
            for month, plain in zip(words.months.split(), MONTHS, strict=True)
        ),
        (rf"\b{words.before} (?={_WHEN})", "by "),
        (rf"(?<!by )\b(?:(?:am|on|el|le|este|ce|diesen) )?({_WHEN}),? {words.latest}\b", r"by \1"),
        (rf"(\bby {_WHEN}),? {words.latest}\b", r"\1"),
    ]
    return tuple(rows)
