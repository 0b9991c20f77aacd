"""Deadlines given as dates: 'by Friday', 'before tomorrow noon', 'bis Montag früh', 'by 2026-12-01', as hours from
now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from agent.offline.language.asking import asks
from agent.offline.language.lexicon import lexicon
from agent.offline.language.measures import DAY_S
from agent.offline.language.mentions import Mentions
from agent.offline.language.rows import Row

_REACH = 4
# Tokens between two times of a day: 'and', 'to', '-'.
_JOINED = 1
# Abbreviations of days have fewer.
_LETTERS_OF_A_DAY = 4
_WEEKEND_H = 48.0
_NIGHT_H = 12.0
_WEEK_D, _WEEKEND_D = 7, 2
# Of parts of every week: their days, and the hours of one, where they say any.
_FREE = {"weekdays": (5, None), "office": (5, 8.0), "nights": (None, 10.0), "weekends": (_WEEKEND_D, None)}
# What may stand between a day and its year, and how much of it: '3rd, 2028', '3 de marzo de 2028'.
_BEFORE_YEAR, _JOINTS = frozenset({",", "st", "nd", "rd", "th", "of", "de", "del"}), 2
# Years that hardly any other number is near: round ones and the powers of two are none of them.
_YEARS = range(2010, 2040)


def deadline(read: Mentions, now: datetime) -> tuple[float, int, int] | None:
    """(Hours from now, token where it begins, token behind), or None. A date without a time ends with its day; 'from
    Friday 6pm to Monday 8am' is as long as it lasts."""
    days = list(_days(read, now))
    if lasts := _lasting(read, days):
        return lasts
    for start, day, end in days or _clock_alone(read, now):
        by = _by(read, start, end)
        if by is None:
            continue
        due, end = _at(read, day, end) if days else (day, end)
        if days and due.hour == 0 and (clock := _clock_before(read, start)):
            # 'By 6pm today'
            due = day + timedelta(hours=clock)
        hours = (due - now).total_seconds() / 3600
        if hours > 0:
            return round(hours, 1), min(by, start), end
    return None


def _clock_alone(read: Mentions, now: datetime) -> Iterator[tuple[int, datetime, int]]:
    """(Token, its next moment, token behind) of a time of the day that no day is named of: 'by 6pm'."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for at, token in enumerate(read.tokens if not _clocks(read) else ()):
        timed = token.kind == "number" and len(token.norm) <= 2 and at not in read.named_tokens
        clock = _clock(read, at) if timed else None
        # '8 h' is how long something takes.
        if clock and clock[1] - 1 not in read.named_tokens and read.tokens[clock[1] - 1].norm != "h":
            due = midnight + timedelta(hours=clock[0])
            yield at, due if due > now else due + timedelta(days=1), clock[1]


def _clock_before(read: Mentions, end: int) -> float | None:
    """The hour of a clock that ends right before a token."""
    starts = (at for at in range(max(end - _CLOCK, 0), end) if read.tokens[at].kind == "number")
    clocks = (_clock(read, at) for at in starts if len(read.tokens[at].norm) <= 2)
    return next((clock[0] for clock in clocks if clock and clock[1] == end), None)


# Tokens of the longest clock: '18', ':', '00', 'h'.
_CLOCK = 4


def since(read: Mentions, now: datetime) -> str | None:
    """The day that runs are listed from on: the last one of that date, or the first of a month that is named."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    days = [day for _, day, _ in _days(read, now)]
    months = (read.found.sense(at, "month") for at in range(len(read.tokens)))
    days += [day for month in months if month and (day := _ahead(today, int(month[0].value), 1))]
    if not days:
        return None
    return (days[0] if days[0] <= today else days[0].replace(year=days[0].year - 1)).date().isoformat()


def moment(read: Mentions, now: datetime) -> datetime | None:
    """The day that is named, with the time of it: 'Monday, 8 am'."""
    days = list(_days(read, now))
    if not days:
        return None
    _, day, end = days[-1]
    end += end < len(read.tokens) and read.tokens[end].text == ","
    return _at(read, day, end, whole=False)[0]


def _lasting(read: Mentions, days: Sequence[tuple[int, datetime, int]]) -> tuple[float, int, int] | None:
    """The hours of a stretch between two days, of a night or of a weekend."""
    for start, _, end in days:
        word = read.found.sense(start, "when")
        over = any(read.found.sense(at, "over") for at in range(max(start - 2, 0), start))
        if word and word[0].value == "overnight":
            return _NIGHT_H, start, end
        if over and word and word[0].value == "end_week":
            return _WEEKEND_H, start, end
    if not days and (clocks := _clocks(read)) and not window(read):
        hours, start, end = clocks
        return hours, start, end
    if len(days) != 2 or not _from(read, days[0][0]):
        return None
    (start, first, end), (_, last, behind) = days
    began, _ = _at(read, first, end, whole=False)
    ends, behind = _at(read, last, behind, whole=False)
    if ends <= began:
        ends += timedelta(days=7)
    return round((ends - began).total_seconds() / 3600, 1), start, behind


def _clocks(read: Mentions) -> tuple[float, int, int] | None:
    """(Hours, token where it begins, token behind) of a stretch between two times of the day: '8pm and 6am'."""
    numbers = [at for at, token in enumerate(read.tokens) if token.kind == "number" and len(token.norm) <= 2]
    hours = [(at, *clock) for at in numbers if at not in read.named_tokens and (clock := _clock(read, at))]
    for (start, first, behind), (at, last, end) in pairwise(hours):
        if at - behind <= _JOINED and first != last:
            return (last - first) % 24, start, end
    for at, last, end in hours:
        start = at - 2
        if start not in numbers or start in read.named_tokens or not _leads_to_an_hour(read, start):
            continue
        first = float(read.tokens[start].norm)
        if read.tokens[end - 1].norm in _HALVES and first < _NOON:
            # '10 to 6am' begins in the evening, '2 to 5pm' after noon.
            first += _NOON if (first < last % _NOON) == (last >= _NOON) else 0
        if first <= 2 * _NOON and first != last:
            return (last - first) % 24, start, end
    return None


def _leads_to_an_hour(read: Mentions, at: int) -> bool:
    """Whether a number without a clock is the first of two hours: the 22 of 'von 22 bis 6 Uhr'."""
    begins = any(read.found.sense(at - 1, name) for name in ("from", "between"))
    ends = read.tokens[at + 1].text in "-–" or read.tokens[at + 1].norm in _UNTIL
    return begins or ends


# Halves of a day, what stands between two hours, and how many a half has.
_HALVES = ("am", "pm", "a", "p")
_UNTIL = ("to", "till", "until", "bis", "a", "à", "ate", "tot", "alle")
_NOON = 12


def _from(read: Mentions, start: int) -> bool:
    return any(read.found.sense(at, "from") for at in range(max(start - 2, 0), start))


def _by(read: Mentions, start: int, end: int) -> int | None:
    """Where the words begin that make a day a deadline: 'by', 'until', 'までに'."""
    for at in range(start - 1, max(start - _REACH, -1), -1):
        if read.found.sense(at, "by") or read.found.sense(at, "expires"):
            return at
        if read.tokens[at].ends_clause:
            break
    behind = next((at for at in range(end, min(end + _REACH, len(read.tokens))) if read.found.sense(at, "by")), None)
    then = any(read.found.sense(at, "then") for at in range(end, len(read.tokens)))
    return start if behind is not None or then else None


def _days(read: Mentions, now: datetime) -> Iterator[tuple[int, datetime, int]]:
    """(Token, midnight at the start of the day, token behind) of every day that is named."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for at, token in enumerate(read.tokens):
        if at in read.named_tokens:
            continue
        if found := None if _is_no_day(read, at) else read.found.sense(at, "day"):
            yield at, today + timedelta(days=(int(found[0].value) - today.weekday()) % 7 or 7), found[1]
        elif found := read.found.sense(at, "when"):
            if day := _worded(str(found[0].value), today):
                yield at, day, found[1]
        elif (found := read.found.sense(at, "month")) and (
            dated := _dated(read, at, found[1], int(found[0].value), today)
        ):
            yield dated
        elif token.kind == "number" and (written := _written(read, at, now)):
            yield written


def _is_no_day(read: Mentions, at: int) -> bool:
    """Whether three letters that a day is written with are another word: 'it sat at 30', not 'by sat' or 'thu 6pm'."""
    before = read.tokens[at - 1].norm if at else ""
    by = any(read.found.sense(near, "by") for near in range(max(at - _REACH, 0), at))
    placed = by or before in lexicon().placing or read.found.sense(at + 1, "clock")
    hour = at + 1 < len(read.tokens) and read.tokens[at + 1].kind == "number"
    return len(read.tokens[at].norm) < _LETTERS_OF_A_DAY and read.tokens[at].norm.isascii() and not (placed or hour)


def _worded(word: str, today: datetime) -> datetime | None:
    match word:
        case "today" | "tonight" | "overnight":
            return today
        case "tomorrow":
            return today + timedelta(days=1)
        case "next_week":
            return today + timedelta(days=7)
        case "next_month":
            return today + timedelta(days=30)
        case "end_week":
            return today + timedelta(days=6 - today.weekday())
        case "end_month" | "end_year":
            first = today.replace(day=1)
            last = word == "end_year" or first.month == 12
            after = first.replace(month=1, year=first.year + 1) if last else first.replace(month=first.month + 1)
            return after - timedelta(days=1)
        case "christmas":
            return _ahead(today, 12, 24)
        case "new_year":
            return _ahead(today, 12, 31)
    return None


def _ahead(today: datetime, month: int, day: int) -> datetime | None:
    """The next such date; None where there is none."""
    try:
        found = today.replace(month=month, day=day)
    except ValueError:
        return None
    return found if found >= today else found.replace(year=found.year + 1)


def _dated(read: Mentions, at: int, end: int, month: int, today: datetime) -> tuple[int, datetime, int] | None:
    """'December 1st', '1 de diciembre'."""
    for number in (end, at - 1, at - 2):
        norm = read.tokens[number].norm if 0 <= number < len(read.tokens) else ""
        if norm.isdigit() and len(norm) <= 2 and (day := _ahead(today, month, int(norm))):
            return min(number, at), *_in_year(read, day, max(end, number + 1))
    return _of_month(read, at, end, month, today)


def _of_month(read: Mentions, at: int, end: int, month: int, today: datetime) -> tuple[int, datetime, int] | None:
    """A month alone behind what makes it a deadline: 'before March' is its first day, 'by the end of March' its
    last."""
    first = _ahead(today, month, 1)
    closing = next((begin for begin in range(max(at - _REACH, 0), at) if _ends_at(read, begin, "closing", at)), at)
    bound = any(_ends_at(read, begin, "by", closing) for begin in range(max(closing - _REACH, 0), closing))
    if first is None or not bound:
        return None
    first, end = _in_year(read, first, end)
    if closing == at:
        return at, first - timedelta(days=1), end
    after = (first + timedelta(days=31)).replace(day=1)
    return closing, after - timedelta(days=1), end


def _in_year(read: Mentions, day: datetime, end: int) -> tuple[datetime, int]:
    """A day in the year that follows at `end`, if one does, and the token behind: '15 January 2027'."""
    at, passed = end, read.found.lexicon.articles | _BEFORE_YEAR
    while at < len(read.tokens) and at - end < _JOINTS and read.tokens[at].norm in passed:
        at += 1
    year = read.tokens[at].norm if at < len(read.tokens) else ""
    if len(year) == 4 and year.isdigit() and int(year) in _YEARS:
        with suppress(ValueError):  # There is no 29 February in it.
            return day.replace(year=int(year)), at + 1
    return day, end


def _ends_at(read: Mentions, at: int, kind: str, end: int) -> bool:
    """Whether a word of a kind at a token ends right before another one, an article apart."""
    behind = read.found.sense(at, kind)
    if behind is None:
        return False
    articles = read.found.lexicon.articles | {"the"}
    return behind[1] <= end and all(read.tokens[each].norm in articles for each in range(behind[1], end))


def _written(read: Mentions, at: int, now: datetime) -> tuple[int, datetime, int] | None:
    """A date in digits: '2026-12-31', '31/12/2026', '12/31/2026', '31.12.2026'. Where the first two may be either,
    the next of the two days is meant; behind dots the day is first."""
    start = read.tokens[at].start
    written = read.text[start : start + 10]
    length = next((index for index, sign in enumerate(written) if not (sign.isdecimal() or sign in "-/.")), 10)
    written = written[:length].rstrip(".")
    sign = next((sign for sign in written if not sign.isdecimal()), "")
    parts = written.split(sign) if sign else []
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        return None
    first, second, third = map(int, parts)
    orders: list[tuple[int, int, int]] = []
    if len(parts[0]) == 4 and sign == "-":
        orders = [(first, second, third)]
    elif len(parts[2]) == 4:
        orders = [(third, second, first)] if sign == "." else [(third, second, first), (third, first, second)]
    days: list[datetime] = []
    for year, month, day in orders:
        with suppress(ValueError):
            days.append(datetime(year, month, day, tzinfo=now.tzinfo))
    if not days:
        return None
    end = start + len(written)
    behind = next((index for index, token in enumerate(read.tokens) if token.start >= end), len(read.tokens))
    return at, min((day for day in days if day > now), default=days[0]), behind


@dataclass(frozen=True)
class Window:
    """The part of every week that machines are free in: `hours` of each of its `days`, None where nothing is said of
    them; said in tokens [start, end), with numbers at `taken`. `also`: weekends, which may come to what there was."""

    days: int | None
    hours: float | None
    start: int
    end: int
    taken: frozenset[int] = frozenset()
    also: bool = False


def window(read: Mentions) -> Window | None:
    """'Weekdays 9 to 18', 'nights, 10 hours each, and no weekends', '10 hours a day'."""
    named = [
        (at, str(part[0].value), part[1])
        for at in range(len(read.tokens))
        if at not in read.named_tokens and (part := read.found.sense(at, "free"))
    ]
    daily, weekly = _recurring(read, named)
    clocks = _clocks(read) if named or _is_of_every_day(read) else None
    if not (named or daily or weekly):
        # 'I only get the machine from 8pm to 8am'
        return Window(None, *clocks, frozenset(range(*clocks[1:]))) if clocks else None
    parts = {name: _WEEK_D - _WEEKEND_D if _refused(read, at, end) else _FREE[name][0] for at, name, end in named}
    counted = [days for days in parts.values() if days]
    days = min(sum(counted) if len(counted) == len(set(counted)) else counted[0], _WEEK_D) if counted else None
    hours = next((_FREE[name][1] for name in parts if _FREE[name][1]), None)
    spans = [(at, end) for at, _, end in named] + [(row.start, row.end) for row in (*daily, *weekly)]
    if weekly:
        days = min(int(weekly[0].amounts[-1].value), _WEEK_D)
    first, last = min((at for at, _ in spans)), max((end for _, end in spans))
    if daily:
        hours = min(_hours(daily[0]), 24.0)
    elif clocks and clocks[1] - _REACH <= last and first <= clocks[2] + _REACH:
        hours, first, last = clocks[0], min(first, clocks[1]), max(last, clocks[2])
    elif clocks:
        # 'It idles at night: what can be done between 8pm and 6am?' is of one of them.
        return None
    elif bare := _bare_hours(read, max(first - _REACH, 0), min(last + _REACH + 1, len(read.tokens))):
        # 'Nine to five'
        hours = bare[0] - (12 if bare[0] > 12 and days == _FREE["office"][0] else 0)
        first, last = min(first, bare[1]), max(last, bare[2])
    if hours and not weekly and "nights" in parts and parts.get("weekends") == _WEEKEND_D:
        # Weekends are free whole, beside the nights of other days.
        hours, days = ((_WEEK_D - _WEEKEND_D) * hours + _WEEKEND_D * 24.0) / _WEEK_D, _WEEK_D
    taken = frozenset(at for row in (*daily, *weekly) for at in range(row.start, row.end))
    taken = taken if daily or weekly else frozenset(range(first, last))
    also = parts.get("weekends") == _WEEKEND_D and not read.does("only")
    return Window(days, hours, first, last, taken, also)


def _is_of_every_day(read: Mentions) -> bool:
    """Whether machines are told to be there for a part of any day: 'I only get it from', 'they are free from'."""
    tokens, days = range(len(read.tokens)), ("day", "when", "month")
    had = read.does("only") or any(read.found.sense(at, "had") for at in tokens)
    dated = any(read.found.sense(at, name) for at in tokens for name in days)
    return bool(had) and not dated and not asks(read.found, [])


# 'Nights, 10 hours each'
_EACH = ("each", "jeweils", "chacune", "ciascuna", "elk")


def _recurring(read: Mentions, named: Sequence[tuple[int, str, int]]) -> tuple[list[Row], list[Row]]:
    """Numbers of hours (or minutes) of each day, and of days of each week, that nothing else is told by."""
    if "buying" in read.asked("topic"):
        return [], []
    rows = [row for row in read.rows if len(row.amounts) == 1 and row.amounts[0].value > 0]

    def of(row: Row, units_s: tuple[float, ...], each_s: float) -> bool:
        amount = row.amounts[0]
        unit = amount.unit("time")
        return unit is not None and unit.size in units_s and any(each.size == each_s for each in amount.per)

    def of_a_night(row: Row) -> bool:
        behind, unit = read.found.does(row.end, "per"), row.amounts[0].unit("time")
        if not (named and unit and unit.size == 3600):
            return False
        each = row.end < len(read.tokens) and read.tokens[row.end].norm in _EACH
        # '8 hours at night', 'at night, 8 hours'
        beside = any(row.end == at or row.start - end in (0, 1) for at, _, end in named)
        return each or beside or bool(behind and read.found.sense(behind, "clock"))

    return (
        [row for row in rows if of(row, (60, 3600), DAY_S) or of_a_night(row)],
        [row for row in rows if of(row, (DAY_S,), _WEEK_D * DAY_S)],
    )


def _hours(row: Row) -> float:
    unit = row.amounts[-1].unit("time")
    return row.amounts[-1].value * unit.size / 3600 if unit else 0.0


def _refused(read: Mentions, at: int, end: int) -> bool:
    """Whether days are ruled out: 'no weekends', 'not on weekends', 'weekends not at all'."""
    text, passed = read.tokens, read.found.lexicon.articles | read.found.lexicon.placing
    start = at
    while start and text[start - 1].norm in passed and text[start - 1].kind == "word":
        start -= 1
    before = any(read.found.does(step, "refuse_right") == start for step in range(max(start - _REACH, 0), start))
    return before or bool(read.found.does(end, "refuse_left", "refuse_right"))


def _bare_hours(read: Mentions, start: int, end: int) -> tuple[float, int, int] | None:
    """(Hours, token where it begins, token behind) of two hours of a day with a word or a sign between: '9 to 18'."""
    for begin in range(start, end):
        if (first := _hour(read, begin)) and (last := _hour(read, first[1] + 1)):
            return (last[0] - first[0]) % 24, begin, last[1]
    return None


def busy_hours(read: Mentions) -> tuple[float, int, int] | None:
    """(Hours of a day, token where it begins, token behind) in which all requests of the day come: 'between 9 and
    5', 'from 8 to 18h'."""
    if clocks := _clocks(read):
        return clocks
    for at in range(len(read.tokens)):
        if read.found.sense(at, "between") and (bare := _bare_hours(read, at + 1, at + 2)):
            # By day, not from five in the afternoon on.
            return bare[0] % 12 or 12.0, at, bare[2]
    return None


def _hour(read: Mentions, at: int) -> tuple[float, int] | None:
    """(Hour of the day, token behind) of a clock or a bare number."""
    if at >= len(read.tokens) or read.tokens[at].kind != "number" or len(read.tokens[at].norm) > 2:
        return None
    return _clock(read, at) or (float(read.tokens[at].norm), at + 1)


def iso_tokens(read: Mentions) -> frozenset[int]:
    """Tokens of dates like 2026-11-20 and 31/12/2026, of years alone and of a list's numbers, which count nothing."""
    found: set[int] = set()
    for at, token in enumerate(read.tokens):
        if token.kind == "number" and _numbers_a_line(read, at):
            found.add(at)
        elif length := _all_day(read, at):
            found.update(range(at, at + length))
        elif token.kind == "number" and at not in read.named_tokens:
            written = _written(read, at, datetime(2000, 1, 1))
            found.update(range(at, written[2]) if written else range(at, at + _is_year(read, at)))
    return frozenset(found)


def _all_day(read: Mentions, at: int) -> int:
    """Tokens of '24/7' and '24h/24' at a place, else 0."""
    norms = [token.norm for token in read.tokens[at : at + 4]]
    return 3 if norms[:3] == ["24", "/", "7"] else 4 if norms == ["24", "h", "/", "24"] else 0


def _numbers_a_line(read: Mentions, at: int) -> bool:
    """Whether a number only says which line of a list it stands on: '1. 8x H100', '2) 16x A100'."""
    behind = read.tokens[at + 1 : at + 3]
    begins = at == 0 or read.tokens[at - 1].text == "\n"
    return begins and len(behind) == 2 and behind[0].text in ".)" and not behind[0].space and behind[1].space


def _is_year(read: Mentions, at: int) -> bool:
    """Whether a number alone behind a preposition is a year: 'bought in 2022', 'since 2021.'"""
    before = read.found.words.get(at - 1, ()) if at else ()
    budget = any(sense.name == "budget_usd" for word in before for sense in word.all("field"))
    dated = bool(budget or any(word.get("stop") for word in before)) and len(read.tokens[at].norm) == 4
    return (
        dated
        and read.tokens[at].norm.isdigit()
        and int(read.tokens[at].norm) in _YEARS
        and not read.found.sense(at + 1, "unit")
    )


def _at(read: Mentions, day: datetime, end: int, whole: bool = True) -> tuple[datetime, int]:
    """The moment that is meant, and the token behind its words; of a day alone its end, or its beginning where not the
    `whole` of it is meant."""
    for at in range(end, min(end + 3, len(read.tokens))):
        if found := read.found.sense(at, "clock"):
            return day + timedelta(hours=float(found[0].value)), found[1]
        token = read.tokens[at]
        if token.kind == "number" and len(token.norm) <= 2 and (clock := _clock(read, at)):
            return day + timedelta(hours=clock[0]), clock[1]
        if token.ends_clause:
            break
    return (day + timedelta(days=1) if whole else day), end


def _clock(read: Mentions, at: int) -> tuple[float, int] | None:
    """(Hour of the day, token behind) of '6pm', '18:00', '8 Uhr'."""
    hour, end = float(read.tokens[at].norm), at + 1
    if end + 1 < len(read.tokens) and read.tokens[end].text == ":" and read.tokens[end + 1].kind == "number":
        hour, end = hour + float(read.tokens[end + 1].norm) / 60, end + 2
    # '16 H100' is no hour.
    behind = read.tokens[end].norm if end < len(read.tokens) and end not in read.named_tokens else ""
    if behind in _HALVES and (len(behind) > 1 or not read.tokens[end].space):
        return hour % 12 + (12 if behind.startswith("p") else 0), end + 1
    named = behind in ("uhr", "h", "heures", "点", "時", "시")
    return (hour, end + named) if named or end > at + 1 else None
