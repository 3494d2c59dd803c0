"""Mail: messages, contacts, drafts, filters."""

from typing import Annotated, TypedDict

from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.kinds import (
    City,
    Count,
    Date,
    Email,
    Money,
    Text,
    choice_kind,
    id_kind,
    text_kind,
)
from pararecover_core.sandbox.registry import tool

Topic = Annotated[
    str,
    choice_kind(
        "topic",
        "the topic",
        ("invoice", "lease", "warranty", "newsletter", "tax form", "job offer", "complaint"),
    ),
]
Person = Annotated[
    str,
    choice_kind(
        "person",
        "the person",
        ("Amara Osei", "Bruno Keller", "Chloe Tran", "Dario Conti", "Elif Kaya", "Femi Ade",
         "Greta Lund", "Hugo Silva"),
    ),
]  # fmt: skip
MessageId = Annotated[str, id_kind("message_id", "the message", "MS")]
DraftId = Annotated[str, id_kind("draft_id", "the draft", "DF")]
Subject = Annotated[
    str, text_kind("subject", "the subject", ("Next steps", "Quick question", "For your records"))
]


class Message(TypedDict):
    """A message that was found."""

    message_id: MessageId
    sender: Email
    receipt_date: Date


class Body(TypedDict):
    """What a message says."""

    message_text: Text


class Attachment(TypedDict):
    """What is attached."""

    attachment_count: Count
    amount_due: Money


class Contact(TypedDict):
    """A person in the address book."""

    address: Email
    home_city: City


class Draft_(TypedDict):
    """A draft."""

    draft_id: DraftId


class Sent(TypedDict):
    """A message that went out."""

    sent_message: MessageId


class Summary(TypedDict):
    """A short text."""

    summary: Text


class Unread(TypedDict):
    """Messages not yet read."""

    unread_messages: Count


@tool("find the latest message about the {topic}", makes="the message")
def search_mail(topic: Topic) -> Message:
    """Find the newest message on a topic in the inbox.

    Args:
        topic: What it is about.
    """
    draw = Draw("mail", topic)
    sender = (
        f"{draw.choice(('office', 'desk', 'team'))}@{draw.choice(('example.com', 'example.org'))}"
    )
    return {"message_id": draw.id("MS"), "sender": sender, "receipt_date": draw.date()}


@tool("find the archived message about the {topic}", makes="the message")
def search_archive(topic: Topic) -> Message:
    """Find the newest message on a topic in the archive.

    Args:
        topic: What it is about.
    """
    draw = Draw("archive", topic)
    return {
        "message_id": draw.id("MS"),
        "sender": "archive@example.net",
        "receipt_date": draw.date(),
    }


@tool("read {message_id}", makes="the message text")
def read_message(message_id: MessageId) -> Body:
    """Read the text of a message.

    Args:
        message_id: Identifier of the message.
    """
    draw = Draw("body", message_id)
    what = draw.choice(("the signed form", "your feedback", "two dates that suit you"))
    return {"message_text": f"Please send us {what} within {draw.integer(3, 20)} days."}


@tool("look at the attachments of {message_id}", makes="the attachments")
def get_attachments(message_id: MessageId) -> Attachment:
    """Count attachments and read the amount due from them.

    Args:
        message_id: Identifier of the message.
    """
    draw = Draw("attachments", message_id)
    return {"attachment_count": draw.integer(1, 6), "amount_due": draw.amount(15, 800)}


@tool("look up {person} in the address book", makes="the contact")
def find_contact(person: Person) -> Contact:
    """Find address and city of a person.

    Args:
        person: Full name.
    """
    draw = Draw("contact", person)
    address = f"{person.replace(' ', '.').lower()}@example.com"
    cities = ("Lisbon", "Oslo", "Vienna", "Turin", "Porto", "Riga", "Ghent", "Leeds")
    return {"address": address, "home_city": draw.choice(cities)}


@tool("send {body} to {recipient} as a message", makes="the sent message")
def send_message(recipient: Email, body: Text) -> Sent:
    """Send a message at once.

    Args:
        recipient: E-mail address.
        body: What it says.
    """
    return {"sent_message": Draw("sent", recipient, body).id("MS")}


@tool("write a draft to {recipient} with the subject {subject}", makes="the draft")
def create_draft(recipient: Email, subject: Subject) -> Draft_:
    """Write a draft without sending it.

    Args:
        recipient: E-mail address.
        subject: Subject line.
    """
    return {"draft_id": Draw("draft", recipient, subject).id("DF")}


@tool("send {draft_id}", makes="the sent message")
def send_draft(draft_id: DraftId) -> Sent:
    """Send a draft.

    Args:
        draft_id: Identifier of the draft.
    """
    return {"sent_message": Draw("sent draft", draft_id).id("MS")}


@tool("sum up {text} in one line", makes="the summary")
def summarise_text(text: Text) -> Summary:
    """Shorten a text to its first eight words.

    Args:
        text: What to shorten.
    """
    words = text.split()
    return {"summary": " ".join(words[:8]) + (" ..." if len(words) > 8 else "")}


@tool("count the unread messages from {sender}", makes="the unread count")
def count_unread(sender: Email) -> Unread:
    """Count unread messages of a sender.

    Args:
        sender: E-mail address.
    """
    return {"unread_messages": Draw("unread", sender).integer(1, 40)}
