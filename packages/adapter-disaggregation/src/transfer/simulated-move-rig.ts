import { planTransfer, type ReceiverGroup } from './plan-transfer.ts';
import { type ReceiverAction, ReceiveTransfer } from './receive-transfer.ts';
import { type SenderAction, type SenderInput, SendTransfer } from './send-transfer.ts';
import type { TransferLayout } from './transfer-layout.ts';
import { decodeMessage, encodeMessage } from './transfer-message.ts';
import type { TransferOutcome } from './transfer-times.ts';

/** Everything that makes a run what it is: the same again gives the same run. Chances are percent, times virtual milliseconds. */
export interface MoveScenario {
  readonly seed: number;
  readonly handover: number;
  readonly receiver: readonly ReceiverGroup[];
  readonly loss: number;
  readonly duplication: number;
  readonly truncation: number;
  readonly maxDelayMs: number;
  /** When the network works again as it should; what is disturbed before is not after. */
  readonly calmAtMs: number;
  /** Who dies when, for ever; null: nobody. */
  readonly death: { readonly side: 'sender' | 'receiver'; readonly atMs: number; readonly noticed: boolean } | null;
  readonly abort: { readonly side: 'sender' | 'receiver'; readonly atMs: number } | null;
  readonly refuses: boolean;
  readonly allocationMs: number;
  readonly stepMs: number;
}

/** What a run came to. */
export interface MoveResult {
  /** By generation. Undefined: still open, or its side is dead. */
  readonly sent: readonly (TransferOutcome | undefined)[];
  readonly received: readonly (TransferOutcome | undefined)[];
  /** What is held for transfers at the end, on sides that live. */
  readonly sendingHolds: number;
  readonly receivingHolds: number;
  /** Requests that go on at the receiver. */
  readonly handedOver: number;
  readonly bytesOfPages: number;
  readonly bytesLacked: number;
  /** Whatever must never be. */
  readonly faults: readonly string[];
}

const MOST_GENERATIONS = 4;
const TIMES = { leaseMs: 1000, retryMs: 100 };
const TICK_MS = 50;
const REQUEST = { model: 'any', prompt: '', note: '' };

export const QUIET: Omit<MoveScenario, 'seed' | 'handover' | 'receiver'> = {
  loss: 0,
  duplication: 0,
  truncation: 0,
  maxDelayMs: 0,
  calmAtMs: 0,
  death: null,
  abort: null,
  refuses: false,
  allocationMs: 5,
  stepMs: 20,
};

/** Two workers and the network between them, on a clock of their own. */
export function simulateMove(layout: TransferLayout, scenario: MoveScenario): MoveResult {
  let state = scenario.seed >>> 0;
  const chance = (below: number) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
  const happens = (percent: number) => now < scenario.calmAtMs && chance(100) < percent;

  let now = 0;
  let order = 0;
  const events: { at: number; order: number; run: () => void }[] = [];
  const at = (time: number, run: () => void) => events.push({ at: time, order: order++, run });
  const dead = { sender: false, receiver: false };
  const faults: string[] = [];

  /** Puts something on its way. What a calm network carries stays in order. */
  const carry = (to: 'sender' | 'receiver', deliver: (intact: boolean) => void) => {
    for (let copies = happens(scenario.duplication) ? 2 : 1; copies > 0; copies--) {
      if (happens(scenario.loss)) continue;
      const intact = !happens(scenario.truncation);
      const delay = now < scenario.calmAtMs && scenario.maxDelayMs > 0 ? chance(scenario.maxDelayMs + 1) : 0;
      at(now + 1 + delay, () => {
        if (!dead[to]) deliver(intact);
      });
    }
  };

  const senders: SendTransfer[] = [];
  const sending = new Set<number>();
  const receivers = new Map<number, ReceiveTransfer>();
  /** Room by generation: pages that were written into it. */
  const rooms = new Map<number, Map<string, number>>();
  const handedOver = new Map<number, Map<string, number>>();
  let bytesOfPages = 0;

  const runSender = (generation: number, actions: readonly SenderAction[]) => {
    for (const action of actions) {
      if (action.do === 'release') {
        if (!sending.delete(generation)) faults.push(`sender released generation ${generation} twice`);
      } else if (action.do === 'send') {
        const bytes = encodeMessage(action.message);
        carry('receiver', (intact) => toReceiver(generation, intact ? bytes : bytes.subarray(0, bytes.length >> 1)));
      } else if (action.do === 'send-page') {
        if (!sending.has(generation)) faults.push('a page was read that was not held any more');
        const { group, block } = action;
        const { pageBytes } = layout.groups[group];
        bytesOfPages += pageBytes;
        // Damaged pages are dropped, as transports do.
        const bytes = new Uint8Array(pageBytes).fill(stampOf(group, block));
        carry('receiver', (intact) => {
          if (intact) receive(generation, { kind: 'page', group, block, bytes });
        });
      } else if (action.outcome.kind === 'lost' && !dead.sender && senders.length < MOST_GENERATIONS) {
        at(now + 10, begin);
      }
    }
  };
  const runReceiver = (generation: number, actions: readonly ReceiverAction[]) => {
    for (const action of actions) {
      if (action.do === 'send') {
        const bytes = encodeMessage(action.message);
        carry('sender', (intact) => toSender(generation, intact ? bytes : bytes.subarray(0, bytes.length >> 1)));
      } else if (action.do === 'allocate') {
        at(now + scenario.allocationMs, () => {
          if (dead.receiver) return;
          if (scenario.refuses) {
            receive(generation, { kind: 'refused', reason: 'no room' });
            return;
          }
          rooms.set(generation, new Map());
          receive(generation, { kind: 'allocated', groups: scenario.receiver });
        });
      } else if (action.do === 'write') {
        const room = rooms.get(generation);
        if (room === undefined) faults.push('a page was written into room that was given back');
        room?.set(`${action.group} ${action.block}`, action.bytes[0]);
      } else if (action.do === 'hand-over') {
        handedOver.set(generation, rooms.get(generation) ?? new Map());
        if (!rooms.delete(generation)) faults.push('room was handed over that was not held');
      } else if (action.do === 'release') {
        if (!rooms.delete(generation)) faults.push('room was given back that was not held');
      }
    }
  };
  const receive = (generation: number, input: Parameters<ReceiveTransfer['handle']>[0]) => {
    const receiver = receivers.get(generation);
    if (receiver) runReceiver(generation, receiver.handle(input, now));
  };
  const toReceiver = (generation: number, bytes: Uint8Array) => {
    const message = decoded(bytes);
    if (message === undefined) return;
    if (!receivers.has(generation)) {
      const newest = Math.max(-1, ...receivers.keys());
      // Of no use to anybody: a later try is under way.
      if (generation < newest || message.kind !== 'offer') return;
      if (newest >= 0) receive(newest, { kind: 'abort', reason: 'the next try has begun' });
      receivers.set(generation, new ReceiveTransfer({ layout, model: REQUEST.model, partBytes: 64, nowMs: now, times: TIMES }));
    }
    receive(generation, { kind: 'message', message });
  };
  const toSender = (generation: number, bytes: Uint8Array) => {
    const message = decoded(bytes);
    if (message !== undefined) runSender(generation, senders[generation].handle({ kind: 'message', message }, now));
  };
  const tellSenders = (input: SenderInput) => {
    for (const [generation, sender] of senders.entries()) runSender(generation, sender.handle(input, now));
  };
  const begin = () => {
    if (dead.sender) return;
    const generation = senders.length;
    const sender = new SendTransfer({ layout, handover: scenario.handover, request: REQUEST, partBytes: 64, times: TIMES });
    senders.push(sender);
    sending.add(generation);
    runSender(generation, sender.start(now));
    for (let step = 0; step * 4 < scenario.handover + 4; step++)
      at(now + step * scenario.stepMs, () => {
        if (dead.sender) return;
        const numTokens = Math.min(scenario.handover, step * 4);
        runSender(generation, sender.handle({ kind: 'progress', numTokens }, now));
      });
  };
  const tick = () => {
    if (!dead.sender) tellSenders({ kind: 'tick' });
    if (!dead.receiver) for (const generation of receivers.keys()) receive(generation, { kind: 'tick' });
  };

  at(0, begin);
  const endMs = scenario.calmAtMs + MOST_GENERATIONS * 4 * TIMES.leaseMs + 4000;
  for (let time = TICK_MS; time < endMs; time += TICK_MS) at(time, tick);
  const { death, abort } = scenario;
  if (death)
    at(death.atMs, () => {
      dead[death.side] = true;
      if (!death.noticed) return;
      const lost = { kind: 'lost', reason: 'the connection ended' } as const;
      if (death.side === 'receiver') tellSenders(lost);
      else for (const generation of receivers.keys()) receive(generation, lost);
    });
  if (abort)
    at(abort.atMs, () => {
      if (dead[abort.side]) return;
      const input = { kind: 'abort', reason: 'the client left' } as const;
      if (abort.side === 'receiver') for (const generation of receivers.keys()) receive(generation, input);
      else tellSenders(input);
    });

  while (events.length > 0) {
    let first = 0;
    for (let i = 1; i < events.length; i++)
      if (events[i].at < events[first].at || (events[i].at === events[first].at && events[i].order < events[first].order))
        first = i;
    const [event] = events.splice(first, 1);
    if (event.at > endMs) break;
    now = event.at;
    event.run();
  }

  const plan = planTransfer(layout, scenario.receiver, scenario.handover);
  for (const pages of handedOver.values()) {
    for (const { group, block } of plan.pages)
      if (pages.get(`${group} ${block}`) !== stampOf(group, block))
        faults.push(`group ${group}, block ${block} is not what was sent`);
    if (pages.size !== plan.pages.length) faults.push('pages came that nobody lacked');
  }
  return {
    sent: senders.map(({ outcome }) => outcome),
    received: [...receivers.values()].map(({ outcome }) => outcome),
    sendingHolds: dead.sender ? 0 : sending.size,
    receivingHolds: dead.receiver ? 0 : rooms.size,
    handedOver: handedOver.size,
    bytesOfPages,
    bytesLacked: plan.bytes,
    faults,
  };
}

function stampOf(group: number, block: number): number {
  return 1 + ((group * 31 + block * 7) % 255);
}

function decoded(bytes: Uint8Array) {
  try {
    return decodeMessage(bytes);
  } catch {
    return undefined;
  }
}
