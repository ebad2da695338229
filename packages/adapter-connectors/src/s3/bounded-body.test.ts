import { describe, expect, it } from 'vitest';
import { boundedBody } from './bounded-body.ts';

/** A body that begins and never ends, and that no signal of its request ends: as one of Node whose response was collected. */
function endless(onCancel: (reason: unknown) => void = () => {}): Response {
  let isBegun = false;
  return new Response(
    new ReadableStream<Uint8Array>({
      async pull(controller) {
        if (isBegun) await new Promise(() => {});
        isBegun = true;
        controller.enqueue(new Uint8Array(10));
      },
      cancel: onCancel,
    }),
  );
}

const never = new AbortController().signal;

describe('the body of a response', () => {
  it('comes whole where it has room', async () => {
    expect(await boundedBody(new Response('abc'), 3, never)).toEqual(new TextEncoder().encode('abc'));
    expect(await boundedBody(new Response(null), 0, never)).toEqual(new Uint8Array(0));
  });

  it('is none where it is too long, announced or not', async () => {
    expect(await boundedBody(new Response('abc', { headers: { 'content-length': '3' } }), 2, never)).toBeNull();
    let reason: unknown = 'not cancelled';
    expect(
      await boundedBody(
        endless((each) => {
          reason = each;
        }),
        9,
        never,
      ),
    ).toBeNull();
    expect(reason).toBeUndefined();
  });

  it('is given up with the signal, also where nothing else ends it', async () => {
    const client = new AbortController();
    let reason: unknown;
    const body = boundedBody(
      endless((each) => {
        reason = each;
      }),
      100,
      client.signal,
    );
    const late = new Error('it took too long');
    client.abort(late);
    await expect(body).rejects.toBe(late);
    expect(reason).toBe(late);
  });

  it('is not begun when the signal came first', async () => {
    const late = new Error('it took too long');
    await expect(boundedBody(endless(), 100, AbortSignal.abort(late))).rejects.toBe(late);
  });
});
