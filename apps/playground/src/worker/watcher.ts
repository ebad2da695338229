import type { HybridEngine } from '@bufferwise/hybrid-engine';
import type { Report } from '../protocol/messages.ts';
import type { EventJournal } from './event-journal.ts';
import { takeMemoryFrame } from './take-memory-frame.ts';
import { takeTreeFrame } from './take-tree-frame.ts';

export type Post = (report: Report, transfer?: Transferable[]) => void;

/** Milliseconds from look to look at least: as many as a screen shows, and never more than two fifths of the worker's time. */
const LEAST_INTERVAL_MS = 1000 / 60;
const INTERVAL_PER_COST = 2.5;
/** Milliseconds between two looks at the tree, whose texts have to be written out. */
const TREE_PAUSE_MS = 200;

const MAX_PAGES = 65_536;
const MAX_BLOCKS = 20_000;

/** Looks at an engine's memory after something has happened, and posts what it saw. */
export class Watcher {
  readonly #post: Post;
  readonly #journal: EventJournal;
  #engine: HybridEngine | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #notBefore = 0;
  #treeNotBefore = 0;
  #sequence = 0;
  /** The most slots in use at a time since the engine was made, by pool group of the device. */
  #mostInUse: readonly number[] = [];

  constructor(post: Post, journal: EventJournal) {
    this.#post = post;
    this.#journal = journal;
  }

  /** Looks at another engine from now on; at none with null. */
  watch(engine: HybridEngine | null): void {
    this.#engine = engine;
    this.#mostInUse = [];
    this.#journal.restart();
    this.poke();
  }

  /** Something has happened. */
  poke(): void {
    if (this.#timer !== null || this.#engine === null) return;
    this.#timer = setTimeout(() => this.look(), Math.max(0, this.#notBefore - performance.now()));
  }

  /** Looks now. */
  look(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const engine = this.#engine;
    if (engine === null) return;
    const started = performance.now();
    const withTree = this.#journal.treeChanged && started >= this.#treeNotBefore;
    const snapshot = engine.manager.inspect({ maxPages: MAX_PAGES, maxBlocks: withTree ? MAX_BLOCKS : 0, tokens: withTree });
    const coldGroupIds = engine.manager.layout.coldPoolGroups.map(({ lifecycleIds }) => lifecycleIds);
    const peaks = engine.manager.takePeakStatistics(0);
    this.#mostInUse = peaks.map(({ unavailable }, i) => Math.max(unavailable, this.#mostInUse[i] ?? 0));
    const seen = { coldGroupIds, mostInUse: this.#mostInUse };
    const { frame, buffer } = takeMemoryFrame(snapshot, seen, this.#sequence++);
    this.#post({ type: 'frame', frame }, [buffer]);
    if (withTree) {
      this.#journal.treeChanged = false;
      this.#treeNotBefore = started + TREE_PAUSE_MS;
      const tree = takeTreeFrame(snapshot, (tokens) => engine.model.tokenizer.decode(tokens));
      this.#post({ type: 'tree', tree });
    }
    this.#postCounts(engine);
    this.#notBefore = started + Math.max(LEAST_INTERVAL_MS, INTERVAL_PER_COST * (performance.now() - started));
    if (this.#journal.treeChanged) this.#lookAgain();
  }

  #postCounts(engine: HybridEngine): void {
    const statistics = engine.statistics();
    const { outside } = engine;
    const entries = this.#journal.take({
      statistics,
      preemptions: { ...engine.preemptions },
      outside: outside && { ...outside },
    });
    if (entries.length > 0) this.#post({ type: 'journal', entries });
    this.#post({
      type: 'statistics',
      statistics: {
        groups: statistics.groups.map(({ groupId, pages, evictedPages, missedSnapshots, counts }) => ({
          groupId,
          pages,
          evictedPages,
          missedSnapshots,
          counts,
        })),
        promptTokens: statistics.requests.promptTokens,
        hitTokens: statistics.requests.hitTokens,
        numSteps: engine.costs.numSteps,
        kept: outside && { savedTokens: outside.savedTokens, loadedTokens: outside.loadedTokens },
      },
    });
  }

  /** The tree has changed and was shown just now. */
  #lookAgain(): void {
    this.#timer ??= setTimeout(() => this.look(), Math.max(0, this.#treeNotBefore - performance.now()));
  }
}
