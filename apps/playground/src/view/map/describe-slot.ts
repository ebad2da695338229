import { type MemoryFrame, NOTHING, SLOT_STATES } from '../../protocol/memory-frame.ts';
import { about, conversations, groups, tree } from '../../state/store.ts';
import { conversationName, counted, listed } from '../../story/names.ts';

const STATE_TEXTS = {
  free: 'Free',
  locked: 'In use now: it may not move',
  held: 'Held by a conversation that waits',
  droppable: 'Held by nobody: to be reused, or to make room',
  scratch: 'Scratch of this step',
} as const;

/** What is in a slot, in lines; the first says what it is. */
export function describeSlot(frame: MemoryFrame, poolIndex: number, slot: number): string[] {
  const pool = frame.pools[poolIndex];
  if (pool === undefined || slot >= pool.numSlots) return [];
  const at = pool.firstSlot + slot;
  const state = SLOT_STATES[frame.state[at]];
  if (frame.page[at] === NOTHING) return [`${STATE_TEXTS[state]}, slot ${slot}`];
  const group = groups.value[frame.group[at]];
  const lines = [`${group?.name ?? 'A page'}, slot ${slot}`, STATE_TEXTS[state]];
  const block = frame.block[at];
  if (block === NOTHING) lines.push(group?.policy === 'private' ? 'Private: in no block of the tree' : 'Not published yet');
  else lines.push(...describeBlock(block, frame.coverage[at]));
  const owners = conversationsOf(frame.owners[at]);
  if (owners.length > 0) lines.push(`Used by ${listed(owners)}`);
  lines.push(`${counted(frame.holds[at], 'reference')}, priority ${frame.priority[at]}`);
  return lines;
}

function describeBlock(block: number, coverage: number): string[] {
  const { value: shown } = tree;
  const position = shown === null ? -1 : shown.block.indexOf(block);
  if (shown === null || position < 0) return [`Block ${block}`];
  const start = shown.ordinal[position] * (about.value?.tokensPerBlock ?? 0);
  const text = shown.texts[position].replaceAll(/\s+/g, ' ').trim();
  return [`Block ${block}: tokens ${start} to ${start + coverage - 1}`, `“${text}”`];
}

function conversationsOf(bits: number): string[] {
  return [...conversations.value.keys()].filter((id) => (bits >>> (id % 32)) & 1).map(conversationName);
}
