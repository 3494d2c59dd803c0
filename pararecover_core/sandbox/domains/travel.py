"""Travel: flights, trains, hotels, visas."""

from typing import Annotated, TypedDict

from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.kinds import (
    City,
    Count,
    Date,
    Minutes,
    Money,
    Text,
    Time,
    id_kind,
)
from pararecover_core.sandbox.registry import NotFoundError, tool

FlightId = Annotated[str, id_kind("flight_id", "the flight", "FL")]
TrainId = Annotated[str, id_kind("train_id", "the train", "TR")]
HotelId = Annotated[str, id_kind("hotel_id", "the hotel", "HT")]
TicketId = Annotated[str, id_kind("ticket_id", "the ticket", "TK")]


class Flight(TypedDict):
    """A flight on offer."""

    flight_id: FlightId
    price: Money
    departs: Time


class FlightDetails(TypedDict):
    """What is known of a flight."""

    seats_left: Count
    duration: Minutes
    airport: Text


@tool(
    "find the cheapest flight from {origin} to {destination} on {date}",
    "look up a flight that goes from {origin} to {destination} on {date}",
    makes="the flight",
)
def search_flights(origin: City, destination: City, date: Date) -> Flight:
    """Find the cheapest flight between two cities on a date.

    Args:
        origin: City of departure.
        destination: City of arrival.
        date: Day of travel, YYYY-MM-DD.
    """
    if origin == destination:
        raise NotFoundError(f"no flight goes from {origin} to itself.")
    draw = Draw("flight", origin, destination, date)
    return {
        "flight_id": draw.id("FL"),
        "price": draw.amount(39, 640),
        "departs": draw.time(),
    }


@tool("get the details of {flight_id}", "check how long {flight_id} takes", makes="its details")
def get_flight_details(flight_id: FlightId) -> FlightDetails:
    """Tell seats left, duration and airport of a flight.

    Args:
        flight_id: Identifier of the flight.
    """
    draw = Draw("flight details", flight_id)
    return {
        "seats_left": draw.integer(2, 90),
        "duration": draw.integer(50, 840),
        "airport": f"Terminal {draw.integer(1, 4)}, gate {draw.integer(1, 60)}",
    }
