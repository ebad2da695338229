import type { Registry } from 'prom-client';

/** The part of a server that works with others, as it shows. */
export interface ClusterPart {
  /** Puts what it counts into a registry. */
  measure(registry: Registry): void;
  inspect(): object;
}
