import { describeConfiguration, loadConfiguration } from "@agentfense/server/configuration";
import { code, table } from "./table.ts";

/** What a setting is when nobody gives it and it depends on others, or on who runs the server. */
const DERIVED: Readonly<Record<string, string>> = {
  "auth.keys": "`required` when a port is open to other machines, else `off`",
  "storage.codebase_path": "`codebases` in the state directory",
  "storage.mount_path": "`mounts` in the state directory",
  "storage.db_path": "`metadata.db` in the state directory",
  "runtime.types": "`runtime.type` and `runtime.fallback`",
};

/** A table for each section of the file. */
export async function configurationTable(): Promise<string> {
  const settings = describeConfiguration(await loadConfiguration({ env: {}, flags: [] }));
  const sections = Map.groupBy(settings, ({ name }) => name.split(".")[0]!);
  return [...sections]
    .map(([section, each]) => {
      const rows = each.map(({ name, default: value, description }) => [
        code(name.slice(section.length + 1)),
        value === undefined ? derived(name) : code(JSON.stringify(value).replace(/^"(.+)"$/, "$1")),
        description,
      ]);
      return `### ${section}\n\n${table(["key", "default", "meaning"], rows)}`;
    })
    .join("\n\n");
}

function derived(name: string): string {
  const text = DERIVED[name];
  if (text === undefined) throw new Error(`the default of ${name} depends on something: say on what in DERIVED`);
  return text;
}
