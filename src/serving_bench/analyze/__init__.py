"""From run directories to a report: read, check, compute, render.

``step.run`` is the entry point. The readers (``inputs``, ``records``, ``trace``,
``promtext``) turn files into values; everything between them and the views is
pure; the views (``console``, ``markdown``, ``html``) show a ``Report`` and
nothing else.
"""
