"""What was given cannot be used: the message names what and where it is and what would be right; 64 a usage error, 65 a file."""


class BadInput(Exception):
    def __init__(self, text, status=64):
        super().__init__(text)
        self.status = status


def all_of(names):
    return ", ".join(names)


def nearest(word, names):
    """What was probably meant, as the end of a message."""
    import difflib  # wanted in messages only
    found = difflib.get_close_matches(word, list(names), 1)
    return f"; did you mean {found[0]}?" if found else "."
