"""Calendar: events, free slots, arithmetic on dates and times."""

import datetime as dt
from typing import Annotated, TypedDict

from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.kinds import (
    Date,
    Days,
    Email,
    Minutes,
    People,
    Text,
    Time,
    choice_kind,
    id_kind,
    text_kind,
)
from pararecover_core.sandbox.registry import NotFoundError, tool

EventId = Annotated[str, id_kind("event_id", "the event", "EV")]
Title = Annotated[
    str,
    text_kind(
        "title",
        "the title",
        ("Design review", "Choir practice", "Budget meeting", "Garden club", "Thesis talk",
         "Board lunch", "Bike repair evening", "Parents' evening"),
    ),
]  # fmt: skip
Weekday = Annotated[
    str,
    choice_kind(
        "weekday",
        "the weekday",
        ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    ),
]


class Event(TypedDict):
    """An event that was entered."""

    event_id: EventId
    end_time: Time


class FreeSlot(TypedDict):
    """A time when someone is free."""

    slot_start: Time
    slot_length: Minutes


class NamedDay(TypedDict):
    """The weekday of a date."""

    weekday: Weekday


class Shifted(TypedDict):
    """A date that was moved."""

    new_date: Date


class Span(TypedDict):
    """Days between two dates."""

    number_of_days: Days


class Later(TypedDict):
    """A time that was moved."""

    later_time: Time


class Invitation(TypedDict):
    """An invitation that was sent."""

    invitation_text: Text


class EventDetails(TypedDict):
    """What is known of an event."""

    attendees: People
    event_room: Text


@tool(
    "create an event called {title} on {date} at {start}",
    "put {title} into the calendar on {date} at {start}",
    makes="the event",
)
def create_event(title: Title, date: Date, start: Time) -> Event:
    """Enter an event into the calendar.

    Args:
        title: Title of the event.
        date: Day, YYYY-MM-DD.
        start: Start, HH:MM.
    """
    draw = Draw("event", title, date, start)
    hour = min(23, int(start[:2]) + draw.integer(1, 2))
    return {"event_id": draw.id("EV"), "end_time": f"{hour:02d}{start[2:]}"}


@tool("tell me how many people attend {event_id}", makes="the event details")
def get_event_details(event_id: EventId) -> EventDetails:
    """Tell attendees and room of an event.

    Args:
        event_id: Identifier of the event.
    """
    draw = Draw("event details", event_id)
    return {
        "attendees": draw.integer(3, 60),
        "event_room": f"Room {draw.choice('ABCD')}{draw.integer(1, 9)}",
    }


@tool("find a free slot of {person} on {date}", makes="the free slot")
def find_free_slot(person: Email, date: Date) -> FreeSlot:
    """Find the first free slot in somebody's calendar.

    Args:
        person: E-mail address of the person.
        date: Day, YYYY-MM-DD.
    """
    draw = Draw("slot", person, date)
    return {"slot_start": draw.time(), "slot_length": draw.integer(3, 12) * 10}


@tool("invite {guest} to {event_id}", makes="the invitation")
def invite_guest(event_id: EventId, guest: Email) -> Invitation:
    """Invite a person to an event.

    Args:
        event_id: Identifier of the event.
        guest: E-mail address of the guest.
    """
    return {"invitation_text": f"{guest} is invited to {event_id}."}


@tool("find out which weekday {date} is", makes="the weekday")
def weekday_of(date: Date) -> NamedDay:
    """Tell the weekday of a date.

    Args:
        date: Day, YYYY-MM-DD.
    """
    return {"weekday": f"{dt.date.fromisoformat(date):%A}"}


@tool(
    "count {days} on from {date} and tell me the date",
    "add {days} to {date}",
    makes="the later date",
)
def add_days(date: Date, days: Days) -> Shifted:
    """Move a date by a number of days.

    Args:
        date: Day, YYYY-MM-DD.
        days: Days to add.
    """
    moved = dt.date.fromisoformat(date) + dt.timedelta(days=int(days))
    if moved.year > 2035:
        raise NotFoundError("the calendar ends in 2035.")
    return {"new_date": moved.isoformat()}


@tool("count the days between {start} and {end}", makes="the day count")
def days_between(start: Date, end: Date) -> Span:
    """Count the days between two dates.

    Args:
        start: First day, YYYY-MM-DD.
        end: Last day, YYYY-MM-DD.
    """
    days = abs((dt.date.fromisoformat(end) - dt.date.fromisoformat(start)).days)
    if days == 0:
        raise NotFoundError("the two dates are the same day.")
    return {"number_of_days": days}


@tool("add {duration} to {start} and tell me the time", makes="the later time")
def add_minutes(start: Time, duration: Minutes) -> Later:
    """Move a time of day by minutes, past midnight if need be.

    Args:
        start: Time, HH:MM.
        duration: Minutes to add.
    """
    moment = int(start[:2]) * 60 + int(start[3:]) + int(duration)
    return {"later_time": f"{moment // 60 % 24:02d}:{moment % 60:02d}"}
