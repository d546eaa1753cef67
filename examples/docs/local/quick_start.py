# #region start
from agentfense import Sandbox

with Sandbox.from_local("./project", preset="agent-safe") as sandbox:
    result = sandbox.run("mkdir -p output && grep -rn TODO src | tee output/todo.txt; cat .env")
    print(result.exit_code, result.stdout, result.stderr)
    for change in sandbox.changes():
        print(change.kind, change.path)
    sandbox.apply()  # or sandbox.diff(), sandbox.discard()
# #endregion
