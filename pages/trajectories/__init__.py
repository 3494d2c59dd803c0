"""The Trajectories page: browse everything, round by round."""

from ui import browse_panel


def render() -> None:
    """Draw the page for the link at hand."""
    browse_panel.show()
