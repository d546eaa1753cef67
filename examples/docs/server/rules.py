# #region presets
from agentfense import Permission, PermissionRule, Sandbox, extend_preset, list_presets, register_preset

print([preset.name for preset in list_presets()])

reviewer = extend_preset(
    "agent-safe",
    additions=[{"pattern": "/docs/**", "permission": "write"}],  # competes: secrets stay hidden
    overrides=[{"pattern": "/config/**", "permission": "view"}],  # wins over everything
)
register_preset("reviewer", reviewer, "agent-safe, with docs to write")
# #endregion

# #region rules
sandbox = Sandbox.from_local(
    "./project",
    preset="reviewer",
    permissions=[PermissionRule("/secrets/signing.pub", Permission.READ, priority=200)],  # or a dict
)
print(sandbox.run("ls secrets; cat config/carriers.json; echo more >> docs/carriers.md").stderr)
# #endregion

# #region explain
answer = sandbox.explain("/secrets/signing.key")
print(answer.permission, answer.deciding and answer.deciding.rule.pattern, len(answer.losing))
print(answer.text)
# #endregion

# #region events
sandbox.run("cat .env; echo x > src/tracker.js")
for event in sandbox.events(types=["permission_denied"]):
    print(event.data["operation"], event.data["path"], event.data["permission"])
    if event.data["path"] == "/workspace/src/tracker.js":
        break  # it goes on with what happens next; `follow=False` ends here by itself
# #endregion

# #region update
sandbox.update_permissions(preset="read-only")  # in force at once, in running commands too
print([f"{rule.pattern} {rule.permission}" for rule in sandbox.permissions.get()])
print(sandbox.run("cat .env | wc -l").stdout)
# #endregion

sandbox.destroy()
sandbox.close()
