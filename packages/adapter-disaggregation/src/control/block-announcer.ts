import type { KvEvent, KvEventSink, Medium } from '@bufferwise/cache-manager';
import { lifecycleKey } from '@bufferwise/core-policy';
import type { TransferLayout } from '../transfer/transfer-layout.ts';
import { type BlockChange, type ControlMessage, MOST_HASHES } from './control-message.ts';

const MEDIA: readonly Medium[] = ['device', 'host', 'disk'];
/** Changes that wait at most; more, and it begins anew with all that is there. */
const MOST_WAITING = 1 << 18;

/** What stands for a block on the control plane: the last 8 bytes of its key, as 16 hexadecimal digits. A hint may be short. */
export function hashOfKey(key: Uint8Array): string {
  return Array.from(key.subarray(key.length - 8), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/**
 * Hears what a cache manager tells and makes messages of it: which blocks can be reused here, by group of the layout, wherever in memory
 * they are. Hand it to the manager as `events`. It remembers what it announced, so that it can begin anew for somebody who missed some.
 */
export class BlockAnnouncer implements KvEventSink {
  readonly partialBlocks = false;
  readonly #layout: TransferLayout;
  /** By group id of the manager: group of the layout. */
  readonly #groups = new Map<number, number>();
  /** By group of the layout, then hash: bits of the media it is in. */
  readonly #there: Map<string, number>[];
  #waiting: BlockChange[] = [];
  #numWaiting = 0;
  #fresh = false;
  #next = 0;

  constructor(layout: TransferLayout) {
    this.#layout = layout;
    this.#there = layout.groups.map(() => new Map());
  }

  /** Number of the next message. */
  get nextBlocks(): number {
    return this.#next;
  }

  /** Hashes of what is there of a group of the layout. */
  blocksOf(group: number): string[] {
    return [...this.#there[group].keys()];
  }

  push(events: readonly KvEvent[]): void {
    for (const event of events) this.#hear(event);
    if (this.#numWaiting > MOST_WAITING) this.beginAnew();
  }

  /** What is there is announced again, all of it. */
  beginAnew(): void {
    this.#fresh = true;
    this.#waiting = [];
    this.#numWaiting = 0;
    this.#there.forEach((hashes, group) => {
      this.#wait('+', group, [...hashes.keys()]);
    });
  }

  /** The next message, or undefined while there is nothing to say. */
  take(): (ControlMessage & { kind: 'blocks' }) | undefined {
    if (this.#waiting.length === 0 && !this.#fresh) return undefined;
    const changes: BlockChange[] = [];
    let room = MOST_HASHES;
    while (room > 0 && this.#waiting.length > 0) {
      const [sign, group, hashes] = this.#waiting[0];
      const taken = hashes.slice(0, room);
      room -= taken.length;
      changes.push([sign, group, taken]);
      if (taken.length === hashes.length) this.#waiting.shift();
      else this.#waiting[0] = [sign, group, hashes.slice(taken.length)];
    }
    this.#numWaiting -= MOST_HASHES - room;
    const fresh = this.#fresh;
    this.#fresh = false;
    return { kind: 'blocks', number: this.#next++, fresh, changes };
  }

  #hear(event: KvEvent): void {
    if (event.type === 'created' || event.type === 'stored' || event.type === 'updated') this.#learnGroup(event);
    switch (event.type) {
      case 'stored':
        this.#change(
          event.groupId,
          event.blocks.map(({ key }) => key),
          (media) => media | bitOf(event.medium),
        );
        break;
      case 'removed':
        this.#change(event.groupId, event.keys, (media) => media & ~bitOf(event.medium));
        break;
      case 'updated':
        this.#change(event.groupId, [event.block.key], (media) => (media & ~bitOf(event.medium.from)) | bitOf(event.medium.to));
        break;
      case 'cleared':
        for (const hashes of this.#there) hashes.clear();
        this.beginAnew();
        break;
    }
  }

  #learnGroup({ groupId, lifecycle }: Extract<KvEvent, { lifecycle: unknown }>): void {
    if (this.#groups.has(groupId)) return;
    const key = lifecycleKey(lifecycle);
    this.#groups.set(
      groupId,
      this.#layout.groups.findIndex((group) => lifecycleKey(group.lifecycle) === key),
    );
  }

  #change(groupId: number, keys: readonly Uint8Array[], change: (media: number) => number): void {
    const group = this.#groups.get(groupId) ?? -1;
    // Of a manager with another layout: nobody could use it.
    if (group < 0) return;
    const there = this.#there[group];
    const came: string[] = [];
    const went: string[] = [];
    for (const hash of keys.map(hashOfKey)) {
      const before = there.get(hash) ?? 0;
      const after = change(before);
      if (after === 0) there.delete(hash);
      else there.set(hash, after);
      if (before === 0 && after !== 0) came.push(hash);
      if (before !== 0 && after === 0) went.push(hash);
    }
    this.#wait('+', group, came);
    this.#wait('-', group, went);
  }

  #wait(sign: '+' | '-', group: number, hashes: readonly string[]): void {
    if (hashes.length === 0) return;
    this.#waiting.push([sign, group, hashes]);
    this.#numWaiting += hashes.length;
  }
}

function bitOf(medium: Medium): number {
  return 1 << MEDIA.indexOf(medium);
}
