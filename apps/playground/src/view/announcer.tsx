import { computed } from '@preact/signals';
import type { JournalKind } from '../protocol/journal.ts';
import { sentences } from '../state/store.ts';

/** What is worth an interruption: not every page that is published. */
const ANNOUNCED: ReadonlySet<JournalKind> = new Set([
  'began',
  'answered',
  'stopped',
  'failed',
  'preempted',
  'evicted',
  'resized',
  'cleared',
  'loaded',
]);

const latest = computed(() => sentences.value.findLast(({ kind }) => ANNOUNCED.has(kind))?.text ?? '');

/** Says the latest of what happened to whoever listens, whatever is shown. */
export function Announcer() {
  return (
    <p class="hidden" role="status">
      {latest.value}
    </p>
  );
}
