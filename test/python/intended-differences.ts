/**
 * What is called otherwise in Python than the rules of spelling say, by reason. A name stands for all that belongs to it, and
 * "*(x)" for that parameter of everything.
 */
export const RENAMED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "Python had the name first, and people know it": {
    Level: "Permission",
    Rule: "PermissionRule",
    RuleType: "PatternType",
    RunResult: "ExecResult",
    RuntimeName: "RuntimeType",
    "Sandbox.exec": "Sandbox.exec_stream",
    "SandboxClient.download_file(path)": "SandboxClient.download_file(file_path)",
    "SandboxClient.upload_file(path)": "SandboxClient.upload_file(file_path)",
    "Sandbox.from_local(directory)": "Sandbox.from_local(path)",
    "Sandbox.from_local(ignore)": "Sandbox.from_local(ignore_patterns)",
    "Sandbox.from_local(name)": "Sandbox.from_local(codebase_name)",
    "*(start)": "*(auto_start)",
  },
  "the same as in download_file": {
    "SandboxClient.download_stream(path)": "SandboxClient.download_stream(file_path)",
  },
  "the same as in from_local": {
    "Sandbox.create(name)": "Sandbox.create(codebase_name)",
    "Sandbox.get_or_create(directory)": "Sandbox.get_or_create(path)",
    "Sandbox.get_or_create(ignore)": "Sandbox.get_or_create(ignore_patterns)",
    "Sandbox.get_or_create(name)": "Sandbox.get_or_create(codebase_name)",
  },
  "from is a word of the language": { "*(from)": "*(source)", "*(to)": "*(target)" },
  "a mistake in the call is one exception there, of which these are kinds": {
    "PresetError < Error": "PresetError < InvalidConfigurationError",
    "ProjectPolicyError < Error": "ProjectPolicyError < InvalidConfigurationError",
    "RuleError < Error": "RuleError < InvalidConfigurationError",
  },
  "each language has its own name for what is thrown": { "SandboxError < Error": "SandboxError < Exception" },
};

/** What Python has nothing like, by the reason. */
export const ONLY_IN_TYPESCRIPT: Readonly<Record<string, readonly string[]>> = {
  "a task is cancelled, and a call interrupted, by the language's own means": ["*(signal)"],
  "lists come whole": ["*(page_size)", "Listing", "DiffListing"],
  "everything runs on a server": ["Engine", "SandboxClient.engine", "*(engine)"],
  "keyword arguments need no type": ["EventFilter", "OutputCallbacks", "TerminalSize", "UploadChoice"],
  "types like these are written out": ["Command", "Content", "JsonValue", "SandboxErrorCode", "TextEncodingName"],
  "each event is a class of its own": ["CommandEvent.data", "CommandEvent.end", "CommandEvent.kind"],
  "a loop over the execution has both, and there are callbacks": ["Execution.stdout", "Execution.stderr"],
  "a file of a view is a FileInfo too": ["FileStat"],
  "rules and a preset are two arguments": [
    "SandboxClient.update_permissions(rules)",
    "SandboxPermissions.update(rules)",
  ],
  "nothing is made that could have a name or an owner": [
    "Sandbox.from_codebase(name)",
    "Sandbox.from_codebase(owner_id)",
  ],
  "a terminal is its output, and waits": [
    "Terminal.exit",
    "Terminal.output",
    "SandboxClient.resize_process(size)",
    "SandboxProcess.resize(size)",
    "Terminal.resize(size)",
    "TerminalConnection",
  ],
  "it has that from the error it extends": ["ProjectPolicyError.hint"],
};

/** What TypeScript has nothing like, by the reason. */
export const ONLY_IN_PYTHON: Readonly<Record<string, readonly string[]>> = {
  "programs that exist use it": [
    "*(secure)",
    "CommandError.command",
    "CommandError.exit_code",
    "CommandError.stderr",
    "CommandError.stdout",
    "ExecResult.output",
    "ExecResult.raise_on_error",
    "Sandbox.codebase",
    "Sandbox.exec",
    "Sandbox.list_files",
    "Sandbox.read_file",
    "Sandbox.read_file_bytes",
    "Sandbox.run(raise_on_error)",
    "Sandbox.runtime",
    "Sandbox.write_file",
    "SandboxError.grpc_code",
    "SandboxClient.session",
    "Session.info",
    "Session.sandbox_id",
    "Session.status",
    "SessionStatus",
    "UploadResult.checksum",
    "UploadResult.file_path",
    "__version__",
    "presets",
  ],
  "short for what sandbox.permissions does": ["Sandbox.explain", "Sandbox.update_permissions"],
  "what TypeScript writes inside of another type has a name": [
    "EntryKind: absent",
    "EntryKind: other",
    "ExitEvent",
    "RuleLike",
    "RuntimeType: mock",
    "Seconds",
    "StderrEvent",
    "StdoutEvent",
    "VersionChange",
    "VersionConflict",
  ],
  "TypeScript asks a FileStat": ["FileInfo.is_dir", "FileInfo.is_file", "FileInfo.is_symlink"],
  "a list that comes whole may be long": ["SandboxClient.list_events(limit)"],
  "rules and a preset are two arguments": [
    "SandboxClient.update_permissions(permissions)",
    "SandboxClient.update_permissions(preset)",
    "SandboxPermissions.update(permissions)",
    "SandboxPermissions.update(preset)",
  ],
  "a terminal is its output, and waits": [
    "Terminal.[iteration]",
    "Terminal.exit_code",
    "SandboxClient.resize_process(columns)",
    "SandboxClient.resize_process(rows)",
    "SandboxProcess.resize(columns)",
    "SandboxProcess.resize(rows)",
    "Terminal.resize(columns)",
    "Terminal.resize(rows)",
    "Terminal.wait",
  ],
};
