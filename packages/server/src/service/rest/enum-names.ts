import type { DescEnum } from "@bufbuild/protobuf";

const numbers = new WeakMap<DescEnum, ReadonlyMap<string, number>>();

/** The number of an enum value by its full name or its short one: `PERMISSION_READ` or `read`, `on_exec` or `on-exec`. */
export function enumNumber(desc: DescEnum, name: string): number | undefined {
  let known = numbers.get(desc);
  if (known === undefined) {
    known = new Map(
      desc.values.flatMap((value) => [value.name, shortName(desc, value.name)].map((each) => [each, value.number])),
    );
    numbers.set(desc, known);
  }
  return known.get(name) ?? known.get(name.toLowerCase().replaceAll("-", "_"));
}

/** What to write, for a person who wrote something else. The zero value says "unspecified" and is no choice. */
export function enumChoices(desc: DescEnum): string {
  return desc.values
    .filter((value) => value.number !== 0)
    .map((value) => shortName(desc, value.name))
    .join(", ");
}

export function shortName(desc: DescEnum, fullName: string): string {
  const prefix = desc.sharedPrefix ?? "";
  const name = fullName.toLowerCase();
  return name.startsWith(prefix) ? name.slice(prefix.length) : name;
}
