// Numbers in Prometheus' text format, and what counts them.

export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export type Labels = Readonly<Record<string, string>>;

export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** The series as they are now, a line each. */
  lines(): readonly string[] | Promise<readonly string[]>;
}

export async function exposition(metrics: readonly Metric[]): Promise<string> {
  const blocks = metrics.map(async (metric) => {
    const { name, help, type } = metric;
    return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...(await metric.lines())].join("\n");
  });
  return `${(await Promise.all(blocks)).join("\n\n")}\n`;
}

/** Counts by labels. Without labels there is one series, from the start. */
export class Counter implements Metric {
  readonly type = "counter";
  readonly name: string;
  readonly help: string;
  readonly #counts = new Map<string, number>();

  constructor(name: string, help: string, { labelled }: { readonly labelled: boolean }) {
    this.name = name;
    this.help = help;
    if (!labelled) this.add({}, 0);
  }

  add(labels: Labels = {}, count = 1): void {
    const series = written(labels);
    this.#counts.set(series, (this.#counts.get(series) ?? 0) + count);
  }

  lines(): string[] {
    return [...this.#counts].map(([labels, count]) => `${this.name}${labels} ${count}`);
  }
}

interface Distribution {
  readonly labels: Labels;
  /** How many were at most each bound, and more than the one before it; those beyond the last are only in `count`. */
  readonly within: number[];
  sum: number;
  count: number;
}

/** How observations are distributed over bounds, by labels. Without labels there is one series, from the start. */
export class Histogram implements Metric {
  readonly type = "histogram";
  readonly name: string;
  readonly help: string;
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, Distribution>();

  constructor(
    name: string,
    help: string,
    { bounds, labelled }: { readonly bounds: readonly number[]; readonly labelled: boolean },
  ) {
    this.name = name;
    this.help = help;
    this.#bounds = bounds;
    if (!labelled) this.#distribution({});
  }

  observe(value: number, labels: Labels = {}): void {
    const distribution = this.#distribution(labels);
    const bucket = this.#bounds.findIndex((bound) => value <= bound);
    if (bucket !== -1) distribution.within[bucket]! += 1;
    distribution.sum += value;
    distribution.count += 1;
  }

  lines(): string[] {
    return [...this.#series.values()].flatMap(({ labels, within, sum, count }) => {
      let upTo = 0;
      const buckets = this.#bounds.map((bound, index) => {
        upTo += within[index]!;
        return `${this.name}_bucket${written({ le: String(bound), ...labels })} ${upTo}`;
      });
      return [
        ...buckets,
        `${this.name}_bucket${written({ le: "+Inf", ...labels })} ${count}`,
        `${this.name}_sum${written(labels)} ${sum}`,
        `${this.name}_count${written(labels)} ${count}`,
      ];
    });
  }

  #distribution(labels: Labels): Distribution {
    const series = written(labels);
    const known = this.#series.get(series);
    if (known !== undefined) return known;
    const empty = { labels, within: this.#bounds.map(() => 0), sum: 0, count: 0 };
    this.#series.set(series, empty);
    return empty;
  }
}

type Reading = number | Readonly<Record<string, number>>;
export type Numbers = () => Reading | Promise<Reading>;

/** A metric that others count: asked for at each scrape, with a label its numbers by the label's values. */
export function readMetric(
  type: "counter" | "gauge",
  {
    name,
    help,
    numbers,
    label,
  }: Pick<Metric, "name" | "help"> & { readonly numbers: Numbers; readonly label?: string | undefined },
): Metric {
  return {
    name,
    help,
    type,
    lines: async () => {
      const reading = await numbers();
      if (typeof reading === "number") return [`${name} ${reading}`];
      return Object.entries(reading).map(([value, count]) => `${name}${written({ [label!]: value })} ${count}`);
    },
  };
}

/** `{method="Exec",code="OK"}`; nothing for no labels. */
function written(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value.replace(/[\\"\n]/g, escaped)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(character: string): string {
  return character === "\n" ? "\\n" : `\\${character}`;
}
