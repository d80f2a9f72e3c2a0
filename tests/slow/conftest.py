"""The table of mistakes that were made on purpose."""


def pytest_terminal_summary(terminalreporter):
    rows = [
        found
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, found in getattr(report, "user_properties", ())
        if name == "mutant" and report.when == "call"
    ]
    if rows:
        terminalreporter.section("mistakes, and the first test that falls")
        for name, fell in rows:
            terminalreporter.write_line(f"{name}: {fell[0] if fell else 'nobody noticed'}")
