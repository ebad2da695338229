import type { Registry } from 'prom-client';
import type { PrefixStore } from '../../input/prefix-store.ts';
import type { MeasuredEngine } from './metrics.ts';
import { readGauge, type Sample } from './read-gauge.ts';

/**
 * Puts what cache, engine and store count into a registry. Counts that only grow are gauges here by their kind, as they are kept elsewhere
 * and only read; their names end as those of counters do, so that `rate` is used on them.
 */
export function readCacheFigures(
  registry: Registry,
  engine: MeasuredEngine,
  storeStatistics: PrefixStore['statistics'] | null,
): void {
  const figure = (name: string, help: string, labelNames: readonly string[], read: () => Iterable<Sample>) =>
    readGauge(registry, { name, help, labelNames }, read);
  const byGroup = (name: string, help: string, read: (group: Group) => number) =>
    figure(name, help, ['group', 'policy'], () =>
      engine.statistics().groups.map((group) => [{ group: group.groupId, policy: group.policy }, read(group)]),
    );

  byGroup('group_pages', 'Pages that exist now', ({ pages }) => pages);
  byGroup('group_hit_pages_total', 'Pages that were looked for and found', ({ counts }) => counts.reusedPages);
  byGroup('group_missed_pages_total', 'Pages that were looked for and not found', ({ counts }) => counts.missedPages);
  byGroup('group_evicted_pages_total', 'Pages that left the device to make room', ({ evictedPages }) => evictedPages);
  byGroup('group_offloaded_pages_total', 'Pages moved to a colder tier', ({ counts }) => counts.offloadedPages);
  byGroup('group_onboarded_pages_total', 'Pages brought back from a colder tier', ({ counts }) => counts.onboardedPages);
  figure('pool_slots', 'Slots of a pool group on the device, by what is in them', ['pool_group', 'state'], () =>
    slotsByState(engine),
  );
  figure('cache_open_requests', 'Requests that the cache holds pages for', [], () => [[{}, engine.statistics().openRequests]]);
  figure('cache_blocks', 'Published blocks', [], () => [[{}, engine.statistics().blocks]]);
  figure('preemptions_total', 'Answers that made way for others', ['kind'], () => [
    [{ kind: 'suspended' }, engine.preemptions.numSuspensions],
    [{ kind: 'released' }, engine.preemptions.numReleases],
  ]);
  figure('engine_steps_total', 'Steps of the model', [], () => [[{}, engine.costs.numSteps]]);
  const { outside } = engine;
  if (outside !== null) {
    figure('outside_total', 'Prefixes kept outside of the process', ['what'], () => samples('what', outside));
  }
  if (storeStatistics !== null) {
    figure('store', 'Pages and bytes of the store', ['what'], () => samples('what', storeStatistics()));
  }
}

type Group = ReturnType<MeasuredEngine['statistics']>['groups'][number];

/** How many slots of each pool group are free, hold a page that may leave, or one that may not. */
function* slotsByState(engine: MeasuredEngine): Iterable<Sample> {
  for (const [index, { free, evictable, unavailable }] of engine.storage().entries()) {
    const states = { free, evictable, locked: unavailable };
    for (const [state, value] of Object.entries(states)) yield [{ pool_group: index, state }, value];
  }
}

/** Numbers of an object; what is null is left out. */
function samples(label: string, counts: object): Sample[] {
  return Object.entries(counts)
    .filter(([, value]) => typeof value === 'number')
    .map(([name, value]) => [{ [label]: snakeCase(name) }, value as number]);
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
