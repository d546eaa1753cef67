import { getPreset, listPresets } from "@agentfense/permission";
import { code, table } from "./table.ts";

/** Every built-in preset, with what it allows and how much it hides. */
export function presetTable(): string {
  const builtIn = listPresets().filter((preset) => preset.builtIn);
  const rows = builtIn.map(({ name, description }) => {
    const rules = getPreset(name);
    const shown = rules.filter(({ permission }) => permission !== "none");
    const hiding = rules.length - shown.length;
    return [
      code(name),
      description,
      shown.map(({ pattern, permission }) => code(`${pattern} ${permission}`)).join(", "),
      hiding === 0 ? "nothing" : `${hiding} patterns`,
    ];
  });
  return table(["preset", "in words", "shows", "hides"], rows);
}
