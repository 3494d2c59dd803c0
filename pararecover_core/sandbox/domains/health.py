"""Health: doctors, appointments, records, doses."""

from typing import Annotated, TypedDict

from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.kinds import (
    City,
    Count,
    Date,
    Kilograms,
    Money,
    Percent,
    Text,
    Time,
    choice_kind,
    id_kind,
    number_kind,
)
from pararecover_core.sandbox.registry import tool

Specialty = Annotated[
    str,
    choice_kind(
        "specialty",
        "the specialty",
        ("dentist", "dermatologist", "physiotherapist", "optician", "cardiologist"),
    ),
]
Patient = Annotated[
    str,
    choice_kind("patient", "the patient", ("Noa Berg", "Tariq Aziz", "Ines Costa", "Paul Moreau")),
]
DoctorId = Annotated[str, id_kind("doctor_id", "the doctor", "DR")]
RecordId = Annotated[str, id_kind("record_id", "the health record", "HR")]
AppointmentId = Annotated[str, id_kind("appointment_id", "the appointment", "AP")]
Centimetres = Annotated[
    float, number_kind("centimetres", "the height", 30, 250, sample=(150, 198), unit="cm")
]
Milligrams = Annotated[float, number_kind("milligrams", "the dose", 0.1, 100_000, unit="mg")]


class Doctor(TypedDict):
    """A doctor."""

    doctor_id: DoctorId
    rating: Percent


class Appointment(TypedDict):
    """An appointment."""

    appointment_id: AppointmentId
    appointment_time: Time


class Record(TypedDict):
    """A health record."""

    record_id: RecordId
    last_visit: Date


class Vitals(TypedDict):
    """What was measured."""

    body_weight: Kilograms
    body_height: Centimetres
    pulse: Count


class MassIndex(TypedDict):
    """Body mass index."""

    body_mass_index: Count


class Dose(TypedDict):
    """A dose."""

    daily_dose: Milligrams


class Tablets(TypedDict):
    """Tablets a day."""

    tablet_count: Count


class Fee(TypedDict):
    """What it costs."""

    fee: Money


class Advice(TypedDict):
    """What to do before."""

    preparation: Text


@tool("find a {specialty} in {city}", makes="the doctor")
def find_doctor(specialty: Specialty, city: City) -> Doctor:
    """Find a doctor of a specialty in a city.

    Args:
        specialty: Specialty.
        city: City.
    """
    draw = Draw("doctor", specialty, city)
    return {"doctor_id": draw.id("DR"), "rating": draw.integer(60, 99)}


@tool("find a {specialty} in {city} with emergency hours", makes="the doctor")
def find_emergency_doctor(specialty: Specialty, city: City) -> Doctor:
    """Find a doctor who sees emergencies at night.

    Args:
        specialty: Specialty.
        city: City.
    """
    draw = Draw("emergency", specialty, city)
    return {"doctor_id": draw.id("DR"), "rating": draw.integer(40, 95)}


@tool("book an appointment with {doctor_id} on {date}", makes="the appointment")
def book_appointment(doctor_id: DoctorId, date: Date) -> Appointment:
    """Book the first free appointment of a day.

    Args:
        doctor_id: Identifier of the doctor.
        date: Day, YYYY-MM-DD.
    """
    draw = Draw("appointment", doctor_id, date)
    return {"appointment_id": draw.id("AP"), "appointment_time": draw.time()}


@tool("ask how to prepare for {appointment_id}", makes="the preparation")
def get_preparation(appointment_id: AppointmentId) -> Advice:
    """Tell how to prepare for an appointment.

    Args:
        appointment_id: Identifier of the appointment.
    """
    hours = Draw("preparation", appointment_id).integer(2, 12)
    return {"preparation": f"Do not eat for {hours} hours before."}


@tool("ask what {appointment_id} costs", makes="the consultation fee")
def get_fee(appointment_id: AppointmentId) -> Fee:
    """Tell the fee of an appointment.

    Args:
        appointment_id: Identifier of the appointment.
    """
    return {"fee": Draw("fee", appointment_id).amount(25, 240)}


@tool("open the health record of {patient}", makes="the health record")
def open_record(patient: Patient) -> Record:
    """Open the health record of a patient.

    Args:
        patient: Full name.
    """
    draw = Draw("record", patient)
    return {"record_id": draw.id("HR"), "last_visit": draw.date()}


@tool("read the vital signs in {record_id}", makes="the vital signs")
def get_vitals(record_id: RecordId) -> Vitals:
    """Read weight, height and pulse from a record.

    Args:
        record_id: Identifier of the record.
    """
    draw = Draw("vitals", record_id)
    return {
        "body_weight": draw.amount(45, 110, digits=1),
        "body_height": draw.integer(150, 198),
        "pulse": draw.integer(52, 98),
    }


@tool(
    "compute the body mass index for a weight of {weight} and a height of {height}",
    makes="the body mass index",
)
def body_mass_index(weight: Kilograms, height: Centimetres) -> MassIndex:
    """Compute the body mass index, rounded.

    Args:
        weight: Kilograms.
        height: Centimetres.
    """
    return {"body_mass_index": max(1, round(weight / (height / 100) ** 2))}


@tool("work out the daily dose at 15 mg a kilogram for a weight of {weight}", makes="the dose")
def daily_dose(weight: Kilograms) -> Dose:
    """Work out a daily dose at 15 mg for each kilogram.

    Args:
        weight: Kilograms.
    """
    return {"daily_dose": round(weight * 15, 1)}


@tool("work out how many tablets of 250 mg make up {dose}", makes="the tablets")
def tablets_for(dose: Milligrams) -> Tablets:
    """Work out how many tablets of 250 mg make a dose.

    Args:
        dose: Milligrams.
    """
    return {"tablet_count": max(1, round(dose / 250))}
