"""Travel: flights, trains, hotels, visas."""

from typing import Annotated, TypedDict

from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.kinds import (
    City,
    Count,
    Date,
    Minutes,
    Money,
    Nights,
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
    departure_time: Time


class FlightDetails(TypedDict):
    """What is known of a flight."""

    free_seats: Count
    flight_time: Minutes
    departure_gate: Text


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
        "departure_time": draw.time(),
    }


@tool(
    "get the details of {flight_id}", "check how long {flight_id} takes", makes="the flight details"
)
def get_flight_details(flight_id: FlightId) -> FlightDetails:
    """Tell seats left, duration and airport of a flight.

    Args:
        flight_id: Identifier of the flight.
    """
    draw = Draw("flight details", flight_id)
    return {
        "free_seats": draw.integer(2, 90),
        "flight_time": draw.integer(50, 840),
        "departure_gate": f"Terminal {draw.integer(1, 4)}, gate {draw.integer(1, 60)}",
    }


class Train(TypedDict):
    """A train on offer."""

    train_id: TrainId
    fare: Money


class Hotel(TypedDict):
    """A hotel on offer."""

    hotel_id: HotelId
    nightly_rate: Money


class HotelDetails(TypedDict):
    """What is known of a hotel."""

    check_in_time: Time
    bed_count: Count


class Ticket(TypedDict):
    """A ticket that was bought."""

    ticket_id: TicketId
    seat: Text


class Visa(TypedDict):
    """What a stay needs."""

    visa_fee: Money
    visa_rule: Text


class Stay(TypedDict):
    """What a stay costs."""

    stay_price: Money


@tool("find a train from {origin} to {destination} on {date}", makes="the train")
def search_trains(origin: City, destination: City, date: Date) -> Train:
    """Find the first train connection between two cities on a date.

    Args:
        origin: City of departure.
        destination: City of arrival.
        date: Day of travel, YYYY-MM-DD.
    """
    if origin == destination:
        raise NotFoundError(f"no train goes from {origin} to itself.")
    draw = Draw("train", origin, destination, date)
    return {"train_id": draw.id("TR"), "fare": draw.amount(12, 210)}


@tool("find a hotel in {city} for {date}", makes="the hotel")
def search_hotels(city: City, date: Date) -> Hotel:
    """Find a hotel with a free room.

    Args:
        city: City.
        date: Night of arrival, YYYY-MM-DD.
    """
    draw = Draw("hotel", city, date)
    return {"hotel_id": draw.id("HT"), "nightly_rate": draw.amount(45, 320)}


@tool("find a hostel in {city} for {date}", makes="the hotel")
def search_hostels(city: City, date: Date) -> Hotel:
    """Find a hostel with a free bed.

    Args:
        city: City.
        date: Night of arrival, YYYY-MM-DD.
    """
    draw = Draw("hostel", city, date)
    return {"hotel_id": draw.id("HT"), "nightly_rate": draw.amount(14, 60)}


@tool("get the details of {hotel_id}", makes="the hotel details")
def get_hotel_details(hotel_id: HotelId) -> HotelDetails:
    """Tell check-in time and beds of a hotel.

    Args:
        hotel_id: Identifier of the hotel.
    """
    draw = Draw("hotel details", hotel_id)
    return {"check_in_time": draw.time(), "bed_count": draw.integer(2, 120)}


@tool("book {train_id}", makes="the ticket")
def book_train(train_id: TrainId) -> Ticket:
    """Buy a ticket for a train.

    Args:
        train_id: Identifier of the train.
    """
    draw = Draw("ticket", train_id)
    return {
        "ticket_id": draw.id("TK"),
        "seat": f"Coach {draw.integer(1, 14)}, seat {draw.integer(1, 90)}",
    }


@tool("book {flight_id}", makes="the ticket")
def book_flight(flight_id: FlightId) -> Ticket:
    """Buy a ticket for a flight.

    Args:
        flight_id: Identifier of the flight.
    """
    draw = Draw("air ticket", flight_id)
    return {"ticket_id": draw.id("TK"), "seat": f"Row {draw.integer(1, 38)}{draw.choice('ACDF')}"}


@tool("check what a visa for {city} costs", makes="the visa")
def check_visa(city: City) -> Visa:
    """Tell fee and rule for a visit.

    Args:
        city: City of the visit.
    """
    draw = Draw("visa", city)
    return {
        "visa_fee": draw.amount(10, 120),
        "visa_rule": f"Stay up to {draw.integer(2, 12)} weeks.",
    }


@tool("work out what a stay costs for {nights} at {nightly_rate} a night", makes="the stay")
def price_stay(nightly_rate: Money, nights: Nights) -> Stay:
    """Multiply a nightly rate by nights.

    Args:
        nightly_rate: Price of a night.
        nights: Number of nights.
    """
    return {"stay_price": round(nightly_rate * nights, 2)}
