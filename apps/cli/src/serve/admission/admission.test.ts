import { describe, expect, it } from 'vitest';
import { Admission } from './admission.ts';

const refused = (status: number) => expect.objectContaining({ name: 'ApiError', status });

describe('admission', () => {
  it('lets as many answers in as run and may wait, and tells others when to come again', () => {
    const admission = new Admission({ maxActive: 2, maxQueue: 1 });
    const first = admission.admit(2);
    admission.admit(1);
    expect(() => admission.admit(1)).toThrow(refused(429));
    expect(() => admission.admit(1)).toThrow(expect.objectContaining({ code: 'queue_full', retryAfter: expect.any(Number) }));
    first.release();
    expect(admission.numAnswers).toBe(1);
    expect(() => admission.admit(3)).toThrow(refused(429));
    admission.admit(2);
  });

  it('says that there is never room for so many', () => {
    const admission = new Admission({ maxActive: 2, maxQueue: 1 });
    admission.admit(3);
    expect(() => admission.admit(4)).toThrow(refused(400));
  });

  it('counts a request that is released twice once', () => {
    const admission = new Admission({ maxActive: 2, maxQueue: 0 });
    const ticket = admission.admit(1);
    admission.admit(1);
    ticket.release();
    ticket.release();
    expect([admission.numRequests, admission.numAnswers]).toEqual([1, 1]);
  });

  it('lets nobody in while it drains, and has drained when the last one has left', async () => {
    const admission = new Admission({ maxActive: 2, maxQueue: 0 });
    const tickets = [admission.admit(1), admission.admit(1)];
    let isDrained = false;
    const drained = admission.drain().then(() => {
      isDrained = true;
    });
    expect(() => admission.admit(1)).toThrow(refused(503));
    tickets[0].release();
    await Promise.resolve();
    expect(isDrained).toBe(false);
    tickets[1].release();
    await drained;
    await admission.drain();
  });

  it('cancels all that are in, and one by itself', () => {
    const admission = new Admission({ maxActive: 4, maxQueue: 0 });
    const [first, second, third] = [admission.admit(1), admission.admit(1), admission.admit(1)];
    first.cancel(new Error('alone'));
    expect([first.signal.aborted, second.signal.aborted]).toEqual([true, false]);
    third.release();
    expect(admission.cancelAll(new Error('all'))).toBe(2);
    expect(second.signal.reason).toEqual(new Error('all'));
    expect(third.signal.aborted).toBe(false);
  });
});
