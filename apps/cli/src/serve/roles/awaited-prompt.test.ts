import type { Admission, ArrivedRequest, TransferReport } from '@bufferwise/adapter-disaggregation';
import type { Job } from '@bufferwise/adapter-disaggregation/nats-control';
import { describe, expect, it, vi } from 'vitest';
import { AwaitedPrompt } from './awaited-prompt.ts';

const PROMPT = { prompt: Uint32Array.of(1, 2, 3), publish: true };
const never = new AbortController().signal;
const job = (generation: number) => ({ request: 'r', generation }) as Job;
const offer = (generation: number, handover = 2) => ({ generation, handover });
const report = (kind: 'complete' | 'lost' | 'refused') => ({ outcome: { kind, reason: 'why' }, groups: [] }) as TransferReport;
const arrival = (generation: number) => ({ request: 'r', generation, report: report('complete') }) as unknown as ArrivedRequest;

/** A prompt that is waited for, what was counted of its moves, and whether room is held for it. */
function awaited() {
  const traffic: TransferReport[] = [];
  const prompt = new AwaitedPrompt(PROMPT, (each) => traffic.push(each));
  const room = { holding: 0 };
  const admit = (generation: number, handover?: number) =>
    prompt.admit(offer(generation, handover), (until) => {
      room.holding++;
      void until.then(() => room.holding--);
    });
  /** What is to be done with an offer that is taken. */
  const taken = (admission: Admission) => {
    if ('refuse' in admission) throw new Error(`it was refused: ${admission.refuse}`);
    return admission;
  };
  return { prompt, room, admit, taken, traffic };
}

describe('a prompt that is read elsewhere', () => {
  it('comes by the try that is waited for, whole but for its last token, and by no other', async () => {
    const { prompt, room, admit, taken, traffic } = awaited();
    expect(admit(0)).toEqual({ refuse: 'this try is not waited for' });
    const expected = prompt.expect(job(1), never);
    expect(admit(0)).toEqual({ refuse: 'this try is not waited for' });
    expect(admit(1, 1)).toMatchObject({ refuse: expect.stringContaining('1 tokens would come of a prompt of 3') });
    const admission = taken(admit(1));
    expect(admission).toMatchObject({ tokens: PROMPT.prompt, publish: true });
    await vi.waitUntil(() => room.holding === 1, 30_000);
    admission.arrived(arrival(1));
    await expected;
    expect(await prompt.arrival).toEqual(arrival(1));
    expect([room.holding, traffic.length]).toEqual([0, 1]);
    expect(prompt.end()).toEqual(arrival(1));
  });

  it('comes once: what comes behind it, or when nobody waits any more, is closed by whom it came through', () => {
    const { prompt, admit, taken } = awaited();
    void prompt.expect(job(0), never);
    const first = taken(admit(0));
    const second = taken(admit(0));
    first.arrived(arrival(0));
    expect(() => second.arrived(arrival(0))).toThrow('nobody waits for it');
    expect(prompt.end()).toEqual(arrival(0));

    const other = awaited();
    void other.prompt.expect(job(0), never);
    const late = other.taken(other.admit(0));
    expect(other.prompt.end()).toBeNull();
    expect(() => late.arrived(arrival(0))).toThrow('nobody waits for it');
    expect(other.admit(0)).toEqual({ refuse: 'this try is not waited for' });
  });

  it('fails with its move, for good where there is no room here, and lets go of the room', async () => {
    for (const [kind, code] of [
      ['lost', undefined],
      ['refused', 'job-refused'],
    ] as const) {
      const { prompt, room, admit, taken } = awaited();
      const failed = prompt.expect(job(0), never).catch((error) => error);
      taken(admit(0)).failed?.(report(kind));
      expect((await failed).code).toBe(code);
      await vi.waitUntil(() => room.holding === 0, 30_000);
    }
  });

  it('lets go of the room when the next try begins, and when nobody waits any more', async () => {
    const { prompt, room, admit, taken } = awaited();
    void prompt.expect(job(0), never);
    taken(admit(0));
    void prompt.expect(job(1), never);
    taken(admit(1));
    await vi.waitUntil(() => room.holding === 1, 30_000);
    prompt.end();
    await vi.waitUntil(() => room.holding === 0, 30_000);
  });

  it('is not waited for by a try that is given up, be it before or while it is waited for', async () => {
    const { prompt, admit } = awaited();
    await expect(prompt.expect(job(0), AbortSignal.abort('before'))).rejects.toBe('before');
    expect(admit(0)).toEqual({ refuse: 'this try is not waited for' });
    const giving = new AbortController();
    const waiting = prompt.expect(job(1), giving.signal);
    giving.abort('while');
    await expect(waiting).rejects.toBe('while');
    expect(admit(1)).toEqual({ refuse: 'this try is not waited for' });
  });
});
