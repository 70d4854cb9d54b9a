"""What the literature reports for one hidden layer of 50 units on the same splits, in the units of the data.

PBP and VI (Graves 2011) as Hernandez-Lobato & Adams (ICML 2015) report them, mean and standard error; MC-dropout as Gal &
Ghahramani (ICML 2016), mean and standard deviation; deep ensembles of five networks that predict the noise as
Lakshminarayanan et al. (NeurIPS 2017), mean and standard deviation. The ensembles trained for 40 epochs.
"""

from __future__ import annotations

from typing import NamedTuple


class Reported(NamedTuple):
    """Mean and spread of the RMSE and of the log-likelihood."""

    rmse: str
    log_likelihood: str

    @property
    def mean_log_likelihood(self) -> float:
        """The number before the spread."""
        return float(self.log_likelihood.split()[0])


VI, PBP, DROPOUT, ENSEMBLE = "VI (Graves)", "PBP", "MC-dropout", "deep ensemble"

PUBLISHED: dict[str, dict[str, Reported]] = {
    "boston": {
        VI: Reported("4.32 ± 0.29", "-2.90 ± 0.07"),
        PBP: Reported("3.01 ± 0.18", "-2.57 ± 0.09"),
        DROPOUT: Reported("2.97 ± 0.85", "-2.46 ± 0.25"),
        ENSEMBLE: Reported("3.28 ± 1.00", "-2.41 ± 0.25"),
    },
    "concrete": {
        VI: Reported("7.19 ± 0.12", "-3.39 ± 0.02"),
        PBP: Reported("5.67 ± 0.09", "-3.16 ± 0.02"),
        DROPOUT: Reported("5.23 ± 0.53", "-3.04 ± 0.09"),
        ENSEMBLE: Reported("6.03 ± 0.58", "-3.06 ± 0.18"),
    },
    "energy": {
        VI: Reported("2.65 ± 0.08", "-2.39 ± 0.03"),
        PBP: Reported("1.80 ± 0.05", "-2.04 ± 0.02"),
        DROPOUT: Reported("1.66 ± 0.19", "-1.99 ± 0.09"),
        ENSEMBLE: Reported("2.09 ± 0.29", "-1.38 ± 0.22"),
    },
    "kin8nm": {
        VI: Reported("0.10 ± 0.00", "0.90 ± 0.01"),
        PBP: Reported("0.10 ± 0.00", "0.90 ± 0.01"),
        DROPOUT: Reported("0.10 ± 0.00", "0.95 ± 0.03"),
        ENSEMBLE: Reported("0.09 ± 0.00", "1.20 ± 0.02"),
    },
    "power": {
        VI: Reported("4.33 ± 0.04", "-2.89 ± 0.01"),
        PBP: Reported("4.12 ± 0.03", "-2.84 ± 0.01"),
        DROPOUT: Reported("4.02 ± 0.18", "-2.80 ± 0.05"),
        ENSEMBLE: Reported("4.11 ± 0.17", "-2.79 ± 0.04"),
    },
    "wine": {
        VI: Reported("0.65 ± 0.01", "-0.98 ± 0.01"),
        PBP: Reported("0.64 ± 0.01", "-0.97 ± 0.01"),
        DROPOUT: Reported("0.62 ± 0.04", "-0.93 ± 0.06"),
        ENSEMBLE: Reported("0.64 ± 0.04", "-0.94 ± 0.12"),
    },
    "yacht": {
        VI: Reported("6.89 ± 0.67", "-3.43 ± 0.16"),
        PBP: Reported("1.02 ± 0.05", "-1.63 ± 0.02"),
        DROPOUT: Reported("1.11 ± 0.38", "-1.55 ± 0.12"),
        ENSEMBLE: Reported("1.58 ± 0.48", "-1.18 ± 0.21"),
    },
}
