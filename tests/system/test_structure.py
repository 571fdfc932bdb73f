"""The counts of the structure (make structure) stay within their bounds."""

import sys
import unittest

import harness

sys.path.insert(0, str(harness.TOP / "tests"))
import structure


class StructureTest(unittest.TestCase):
    def test_no_bound_is_exceeded(self):
        for name, number, bound, what in structure.counts():
            with self.subTest(name):
                self.assertLessEqual(number, bound, what)
                self.assertGreaterEqual(number, 0)

    def test_what_is_counted_is_found(self):
        """Each count but those of cycles and of what is gone is of something that there is."""
        for name, number, _, what in structure.counts():
            with self.subTest(name):
                self.assertEqual(number > 0, name not in ("cycles", "parts"), what)
