"""Photographs a part of a report for the README and howto/report.md. It needs Chromium, and the data set of the run.

ssvi report zoo/cifar10-hour --out out/report.html
python docs/tools/report_picture.py out/report.html
"""

import base64
import io
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

ROOT = Path(__file__).parent.parent.parent
sys.path.append(str(ROOT / "tests" / "helpers"))

from browser import chromium  # noqa: E402

PICTURE = ROOT / "docs" / "howto" / "figures" / "report.png"
WIDTH = 1000
HIDE = "document.querySelectorAll('section').forEach(part => part.hidden = part.id !== 'calibration')"
END = "Math.ceil(document.querySelector('#calibration').getBoundingClientRect().bottom)"


def main() -> None:
    """The title and one section of the page as a PNG file of 64 colours."""
    with TemporaryDirectory() as profile, chromium(Path(profile)) as browser:
        browser("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
        browser("Emulation.setDeviceMetricsOverride", width=WIDTH, height=600, deviceScaleFactor=1, mobile=False)
        browser.open(Path(sys.argv[1]).resolve().as_uri())
        browser.value(HIDE)
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": browser.value(END) + 24, "scale": 1}
        taken = browser("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
    image = Image.open(io.BytesIO(base64.b64decode(taken["data"])))
    PICTURE.parent.mkdir(exist_ok=True)
    image.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(PICTURE, optimize=True)
    print(f"{PICTURE}: {image.size}, {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
