"""Without scikit-learn the package works, and the estimators say what to install."""

import subprocess
import sys

PROGRAM = """
import sys
sys.modules["sklearn"] = None  # as if it were not installed
import ssvi
from ssvi.errors import UserError
ssvi.to_bnn, ssvi.likelihoods, ssvi.save
try:
    ssvi.SSVIRegressor
except UserError as error:
    print(error)
"""


def test_what_to_install():
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert "pip install 'ssvi[table]'" in result.stdout
