"""How a fitted tree is written for others: the leaf of a row as an expression of SQL, and as a plain function."""

from __future__ import annotations

from abc import abstractmethod

from sklearn.utils.validation import check_is_fitted


class Exports:
    """Mixin of the trees that databases and programs can follow."""

    @abstractmethod
    def _leaf_in_sql(self, quote: str) -> str:
        """The expression, of a fitted tree."""

    @abstractmethod
    def _leaf_in_python(self, name: str) -> str:
        """The source, of a fitted tree."""

    def export_python(self, name: str = "leaf_of") -> str:
        """Source of a plain function that takes one row as a mapping and returns its leaf; it needs no import.

        Parameters
        ----------
        name : str
            Of the function.

        Returns
        -------
        str
            To be written to a file, or run by ``exec``.

        Raises
        ------
        InvalidParameterError
            If the name is no identifier, or taken by the language.

        Notes
        -----
        Missing values (absent, None, nan or pandas.NA) go where ``apply`` sends them; a soft tree without preprocessing
        has nothing to fill in for them, and the function raises a TypeError. A dense split is the sum of its points, of
        which rounding may send a row within its reach of the threshold to the other side.
        """
        check_is_fitted(self, "tree_")
        return self._leaf_in_python(name)

    def export_sql(self, quote: str = '"') -> str:
        """SQL expression (CASE) whose value is the leaf of a row; missing values (NULL) go where ``apply`` sends them.

        Parameters
        ----------
        quote : {'"', "`"}
            What stands around the names of columns. MySQL and BigQuery want "`"; a backslash or a quote in a level
            then has a backslash before it, as they read texts.

        Returns
        -------
        str
            For ``SELECT *, (...) AS leaf FROM table``.

        Notes
        -----
        Levels are compared as text, numbers as the database holds them. What it holds otherwise than the tree reads it
        is cast before, as in ``FROM (SELECT CAST(size AS REAL) AS size FROM table)``:

        - booleans to 0 and 1, as not every database compares them so; booleans that training had as categories to the
          texts 'True' and 'False';
        - numbers held as text, or whole numbers beyond 2**53, to double precision, as the tree reads them;
        - NaN to NULL, by ``NULLIF(size, 'NaN')``: PostgreSQL and DuckDB take NaN for larger than any number;
        - texts by ``CAST(grade AS BINARY)`` in MariaDB and MySQL, for which 'a' and 'A' are one by default, and in
          MariaDB 'a' and 'a ' too.

        The rules of a soft tree are written as they are printed. A dense split is the sum of its points, of which
        rounding may send a row within its reach of the threshold to the other side.
        """
        check_is_fitted(self, "tree_")
        return self._leaf_in_sql(quote)
