import { Gauge, type Registry } from 'prom-client';

type Labels = Readonly<Record<string, string | number>>;
export type Sample = readonly [labels: Labels, value: number];

export interface ReadGaugeOptions {
  /** Without the `bufferwise_` that all have. */
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
}

/** Puts a figure that is kept elsewhere into a registry: it is read when somebody asks for all. */
export function readGauge(registry: Registry, options: ReadGaugeOptions, read: () => Iterable<Sample>): void {
  const { name, help, labelNames = [] } = options;
  new Gauge({
    name: `bufferwise_${name}`,
    help,
    labelNames: [...labelNames],
    registers: [registry],
    collect() {
      this.reset();
      for (const [labels, value] of read()) this.set(labels, value);
    },
  });
}
