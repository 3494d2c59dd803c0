"""Jobs: openings, candidates, interviews, salaries."""

from typing import Annotated, TypedDict

from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.kinds import (
    City,
    Date,
    Email,
    Money,
    Percent,
    Text,
    Time,
    Years,
    choice_kind,
    id_kind,
)
from pararecover_core.sandbox.registry import tool

Role = Annotated[
    str,
    choice_kind(
        "role",
        "the role",
        ("gardener", "data analyst", "nurse", "electrician", "translator", "bus driver", "baker"),
    ),
]
JobId = Annotated[str, id_kind("opening_id", "the opening", "JB")]
CandidateId = Annotated[str, id_kind("candidate_id", "the candidate", "CN")]
InterviewId = Annotated[str, id_kind("interview_id", "the interview", "IV")]


class Opening(TypedDict):
    """A job opening."""

    opening_id: JobId
    monthly_salary: Money


class OpeningDetails(TypedDict):
    """What an opening asks."""

    application_deadline: Date
    contact_address: Email


class Candidate(TypedDict):
    """A candidate."""

    candidate_id: CandidateId
    years_of_experience: Years


class Match(TypedDict):
    """How well somebody fits."""

    fit_score: Percent
    fit_reason: Text


class Interview(TypedDict):
    """An interview."""

    interview_id: InterviewId
    interview_time: Time


class Questions(TypedDict):
    """What will be asked."""

    interview_questions: Text


class Net(TypedDict):
    """Salary after tax."""

    net_salary: Money


class Yearly(TypedDict):
    """Salary of a year."""

    yearly_salary: Money


@tool("find a job as a {role} in {city}", makes="the opening")
def search_jobs(role: Role, city: City) -> Opening:
    """Find a permanent job.

    Args:
        role: What the job is.
        city: Where it is.
    """
    draw = Draw("opening", role, city)
    return {"opening_id": draw.id("JB"), "monthly_salary": draw.amount(1400, 6200)}


@tool("find an internship as a {role} in {city}", makes="the opening")
def search_internships(role: Role, city: City) -> Opening:
    """Find an internship.

    Args:
        role: What the internship is.
        city: Where it is.
    """
    draw = Draw("internship", role, city)
    return {"opening_id": draw.id("JB"), "monthly_salary": draw.amount(400, 1300)}


@tool("get deadline and contact of {opening_id}", makes="the opening details")
def get_opening_details(opening_id: JobId) -> OpeningDetails:
    """Tell deadline and contact of an opening.

    Args:
        opening_id: Identifier of the opening.
    """
    draw = Draw("opening details", opening_id)
    return {
        "application_deadline": draw.date(),
        "contact_address": f"{draw.choice(('hr', 'jobs', 'team'))}@example.com",
    }


@tool("find a candidate for {opening_id}", makes="the candidate")
def find_candidate(opening_id: JobId) -> Candidate:
    """Find the best candidate for an opening.

    Args:
        opening_id: Identifier of the opening.
    """
    draw = Draw("candidate", opening_id)
    return {"candidate_id": draw.id("CN"), "years_of_experience": draw.integer(1, 30)}


@tool("check how well {candidate_id} fits", makes="the match")
def check_fit(candidate_id: CandidateId) -> Match:
    """Tell how well a candidate fits, and why.

    Args:
        candidate_id: Identifier of the candidate.
    """
    draw = Draw("fit", candidate_id)
    why = draw.choice(("speaks two languages", "led a small team", "knows the tools"))
    return {"fit_score": draw.integer(40, 99), "fit_reason": f"The candidate {why}."}


@tool("arrange an interview with {candidate_id} on {date}", makes="the interview")
def arrange_interview(candidate_id: CandidateId, date: Date) -> Interview:
    """Arrange an interview on a day.

    Args:
        candidate_id: Identifier of the candidate.
        date: Day, YYYY-MM-DD.
    """
    draw = Draw("interview", candidate_id, date)
    return {"interview_id": draw.id("IV"), "interview_time": draw.time()}


@tool("prepare questions for {interview_id}", makes="the interview questions")
def prepare_questions(interview_id: InterviewId) -> Questions:
    """Prepare questions for an interview.

    Args:
        interview_id: Identifier of the interview.
    """
    draw = Draw("questions", interview_id)
    topic = draw.choice(("a hard week", "your last project", "working at night"))
    return {"interview_questions": f"Tell us about {topic}. Why here?"}


@tool("work out the net salary if {salary} is the gross salary", makes="the net salary")
def net_salary(salary: Money) -> Net:
    """Take 31 percent of tax and insurance off a salary.

    Args:
        salary: Gross salary.
    """
    return {"net_salary": max(0.01, round(salary * 0.69, 2))}


@tool("work out the yearly salary if each month pays {salary}", makes="the yearly salary")
def yearly_salary(salary: Money) -> Yearly:
    """Multiply a monthly salary by twelve.

    Args:
        salary: Monthly salary.
    """
    return {"yearly_salary": round(min(1e7, salary * 12), 2)}
