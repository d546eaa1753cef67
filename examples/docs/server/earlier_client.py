import os

from agentfense import CommandExecutionError, Sandbox, SandboxClient

endpoint = os.environ["AGENTFENSE_ENDPOINT"].removeprefix("http://")

# #region sandbox
with Sandbox.from_local("./project", preset="agent-safe", endpoint=endpoint) as sandbox:
    result = sandbox.run("grep -rn TODO src; cat .env")
    print(result.exit_code, result.stdout, result.stderr)
    with sandbox.session() as session:
        session.exec("cd src")
        print(session.exec("pwd").stdout)
    try:
        sandbox.run("exit 3", raise_on_error=True)
    except CommandExecutionError as error:
        print(error.exit_code)
# #endregion

# #region client
with SandboxClient(endpoint=endpoint) as client:
    codebase = client.create_codebase(name="parcels", owner_id="team-7")
    client.upload_file(codebase.id, "app.py", b"print('hello')\n")
    rules = [{"pattern": "**/*", "permission": "read"}, {"pattern": "/output/**", "permission": "write"}]
    sandbox = client.create_sandbox(codebase.id, permissions=rules)
    client.start_sandbox(sandbox.id)
    print(client.exec(sandbox.id, command="cat app.py").stdout)
    client.destroy_sandbox(sandbox.id)
    client.delete_codebase(codebase.id)
# #endregion
