"""HTML as tests read it: its tags, its text, and its drawings."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

VOID = {"meta", "link", "br", "img"}


class Tags(HTMLParser):
    """Open tags, and whether every one is closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.names, self.attributes, self.text = [], [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def drawings(page):
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.S)]
