import { MsgpackWriter } from './msgpack-writer.ts';
import type { VllmBlockRemoved, VllmBlockStored, VllmEvent, VllmExtraKey } from './vllm-events.ts';

/** How a batch of events is written. */
export interface VllmBatchOptions {
  /** Seconds since 1970. */
  timestamp: number;
  /** Which of several engines that serve one model this is. Default null, for the only one. */
  dataParallelRank?: number | null;
  /**
   * `map`: events as maps, as vLLM writes them today. `array`: events by position, as it did until 2026 and as SGLang does.
   * Default `map`.
   */
  form?: 'map' | 'array';
}

/**
 * Writes a batch as vLLM publishes it: MessagePack of `[timestamp, events, data-parallel rank]`, always three elements, as
 * some readers insist.
 *
 * In map form the fields that older readers know are always there, null or not; the later ones only when set. In array form the
 * later ones are left out at the end when none is set, else all four are there.
 */
export function encodeVllmBatch(events: readonly VllmEvent[], options: VllmBatchOptions): Uint8Array {
  const { timestamp, dataParallelRank = null, form = 'map' } = options;
  const writer = new MsgpackWriter();
  writer.array(3);
  writer.float64(timestamp);
  writer.array(events.length);
  for (const event of events) writeEvent(writer, event, form);
  write(writer, dataParallelRank);
  return writer.finish();
}

/** Writes one event. */
export function writeEvent(writer: MsgpackWriter, event: VllmEvent, form: 'map' | 'array'): void {
  const fields = fieldsOf(event);
  if (form === 'map') {
    const present = fields.filter(({ always, value }) => always || value !== null);
    writer.map(1 + present.length);
    writer.string('type');
    writer.string(event.type);
    for (const { key, value } of present) {
      writer.string(key);
      write(writer, value);
    }
    return;
  }
  const values =
    event.type === 'AllBlocksCleared' ? [] : [...fields.filter(({ late }) => !late).map(({ value }) => value), ...tail(event)];
  writer.array(1 + values.length);
  writer.string(event.type);
  for (const value of values) write(writer, value);
}

type Value = number | bigint | string | null | readonly (Value | VllmExtraKey)[];

interface Field {
  key: string;
  value: Value;
  /** Written in map form also when null. */
  always?: boolean;
  /** Came later: stands in the tail of the array form. */
  late?: boolean;
}

function fieldsOf(event: VllmEvent): Field[] {
  if (event.type === 'AllBlocksCleared') return [];
  if (event.type === 'BlockRemoved') {
    return [
      { key: 'block_hashes', value: event.blockHashes, always: true },
      { key: 'medium', value: event.medium, always: true },
      { key: 'group_idx', value: event.groupIndex ?? null, late: true },
      { key: 'locality', value: event.locality ?? null, late: true },
    ];
  }
  return [
    { key: 'block_hashes', value: event.blockHashes, always: true },
    { key: 'parent_block_hash', value: event.parentBlockHash, always: true },
    { key: 'token_ids', value: event.tokenIds, always: true },
    { key: 'block_size', value: event.blockSize, always: true },
    { key: 'lora_id', value: event.loraId, always: true },
    { key: 'medium', value: event.medium, always: true },
    { key: 'lora_name', value: event.loraName, always: true },
    { key: 'extra_keys', value: event.extraKeys ?? null },
    { key: 'group_idx', value: event.groupIndex ?? null, late: true },
    { key: 'kv_cache_spec_kind', value: event.specKind ?? null, late: true },
    { key: 'kv_cache_spec_sliding_window', value: event.slidingWindow ?? null, late: true },
    { key: 'locality', value: event.locality ?? null, late: true },
  ];
}

/** The end of an event in array form: group, kind, window, locality, or the group alone when nothing behind it is set. */
function tail(event: VllmBlockStored | VllmBlockRemoved): Value[] {
  const [specKind, slidingWindow] = event.type === 'BlockStored' ? [event.specKind, event.slidingWindow] : [];
  const behind = [specKind ?? null, slidingWindow ?? null, event.locality ?? null];
  return [event.groupIndex ?? null, ...(behind.some((value) => value !== null) ? behind : [])];
}

function write(writer: MsgpackWriter, value: Value | VllmExtraKey): void {
  if (value === null) writer.nil();
  else if (typeof value === 'string') writer.string(value);
  else if (typeof value === 'number' || typeof value === 'bigint') writer.integer(value);
  else {
    writer.array(value.length);
    for (const element of value) write(writer, element);
  }
}
