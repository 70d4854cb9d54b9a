"""Tables: a file becomes numbers, by what scikit-learn's parts learn from the training rows, stored without pickle."""

from ssvi.data.tables.files import NPZ_TARGET, SUFFIXES, is_table, read_table
from ssvi.data.tables.learnt import CategoryColumn, LeftOut, NumberColumn, Preprocessing, Target
from ssvi.data.tables.load import TableRequest, load_table, read_like
from ssvi.data.tables.rows import Rows, TableData
from ssvi.data.tables.targets import TASKS
from ssvi.data.tables.transform import encode, notes
from ssvi.data.tables.wording import describe

__all__ = [
    "NPZ_TARGET",
    "SUFFIXES",
    "TASKS",
    "CategoryColumn",
    "LeftOut",
    "NumberColumn",
    "Preprocessing",
    "Rows",
    "TableData",
    "TableRequest",
    "Target",
    "describe",
    "encode",
    "is_table",
    "load_table",
    "notes",
    "read_like",
    "read_table",
]
