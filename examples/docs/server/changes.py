from agentfense import Sandbox

with Sandbox.from_local("./project", preset="development") as sandbox:
    # #region look
    sandbox.run("echo '# Tracker' > README.md; echo draft > draft.txt; rm docs/carriers.md")
    for change in sandbox.changes():
        print(change.kind, change.path)
    for diff in sandbox.diff(["/README.md"]):
        print(diff.unified)
    # #endregion

    # #region decide
    sandbox.discard(["/draft.txt"])
    for outcome in sandbox.apply(dry_run=True).outcomes:
        print(outcome.change.path, outcome.applied, outcome.reason)
    sandbox.apply(["/README.md"])  # now ./project/README.md is changed
    print([change.path for change in sandbox.changes()])  # what is left
    # #endregion
