"""Media: films, songs, podcasts, playlists."""

from typing import Annotated, TypedDict

from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.kinds import (
    Count,
    Date,
    Minutes,
    Money,
    Percent,
    Text,
    choice_kind,
    id_kind,
    text_kind,
)
from pararecover_core.sandbox.registry import tool

Genre = Annotated[
    str,
    choice_kind(
        "genre", "the genre", ("comedy", "documentary", "crime", "science fiction", "western")
    ),
]
Style = Annotated[
    str,
    choice_kind("style", "the style", ("jazz", "folk", "soul", "tango", "country", "choral")),
]
FilmId = Annotated[str, id_kind("film_id", "the film", "FM")]
SongId = Annotated[str, id_kind("song_id", "the song", "SG")]
PlaylistId = Annotated[str, id_kind("playlist_id", "the playlist", "PY")]
PlaylistName = Annotated[
    str, text_kind("playlist_name", "the name", ("Long drive", "Sunday", "Deep work", "Kitchen"))
]


class Film(TypedDict):
    """A film."""

    film_id: FilmId
    film_length: Minutes


class Rating(TypedDict):
    """What viewers think."""

    approval_rate: Percent
    film_review: Text


class Rental(TypedDict):
    """What renting costs."""

    rental_price: Money
    return_date: Date


class Song(TypedDict):
    """A song."""

    song_id: SongId
    play_count: Count


class Playlist(TypedDict):
    """A playlist."""

    playlist_id: PlaylistId


class Length(TypedDict):
    """How long something is."""

    playing_time: Minutes


class Lyrics(TypedDict):
    """Words of a song."""

    lyrics_text: Text


@tool("find a {genre} film to watch at home", makes="the film")
def search_film(genre: Genre) -> Film:
    """Find a film of a genre to stream.

    Args:
        genre: Genre.
    """
    draw = Draw("film", genre)
    return {"film_id": draw.id("FM"), "film_length": draw.integer(71, 190)}


@tool("find a {genre} film in the cinema", makes="the film")
def search_cinema(genre: Genre) -> Film:
    """Find a film of a genre that a cinema shows now.

    Args:
        genre: Genre.
    """
    draw = Draw("cinema", genre)
    return {"film_id": draw.id("FM"), "film_length": draw.integer(80, 170)}


@tool("check the reviews of {film_id}", makes="the film reviews")
def get_film_rating(film_id: FilmId) -> Rating:
    """Tell approval and one review of a film.

    Args:
        film_id: Identifier of the film.
    """
    draw = Draw("rating", film_id)
    word = draw.choice(("Slow but rich", "Funny to the end", "Fine pictures"))
    return {
        "approval_rate": draw.integer(30, 97),
        "film_review": f"{word}, {draw.integer(2, 5)} of 5 stars.",
    }


@tool("see what renting {film_id} costs", makes="the rental")
def get_rental(film_id: FilmId) -> Rental:
    """Tell price and last day of a rental.

    Args:
        film_id: Identifier of the film.
    """
    draw = Draw("rental", film_id)
    return {"rental_price": draw.amount(1.5, 12), "return_date": draw.date()}


@tool("find a {style} song", makes="the song")
def search_song(style: Style) -> Song:
    """Find a much played song of a style.

    Args:
        style: Style.
    """
    draw = Draw("song", style)
    return {"song_id": draw.id("SG"), "play_count": draw.integer(10, 9000)}


@tool("get the lyrics of {song_id}", makes="the lyrics")
def get_lyrics(song_id: SongId) -> Lyrics:
    """Tell the first line of a song.

    Args:
        song_id: Identifier of the song.
    """
    draw = Draw("lyrics", song_id)
    lines = ("The river keeps its own time", "We left the lamp on low", "Snow on the market stalls")
    return {"lyrics_text": f"{draw.choice(lines)}, verse {draw.integer(1, 4)}"}


@tool("start a playlist called {name} with {song_id}", makes="the playlist")
def create_playlist(name: PlaylistName, song_id: SongId) -> Playlist:
    """Start a playlist with a song.

    Args:
        name: Name of the playlist.
        song_id: Identifier of the first song.
    """
    return {"playlist_id": Draw("playlist", name, song_id).id("PY")}


@tool("see how long {playlist_id} plays", makes="the playing time")
def get_playing_time(playlist_id: PlaylistId) -> Length:
    """Tell the playing time of a playlist.

    Args:
        playlist_id: Identifier of the playlist.
    """
    return {"playing_time": Draw("playing", playlist_id).integer(12, 600)}
