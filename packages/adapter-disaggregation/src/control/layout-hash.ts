import { describeLayout, type TransferLayout } from '../transfer/transfer-layout.ts';
import { ControlError } from './control-error.ts';
import { encodeJson, MOST_GROUPS } from './control-message.ts';

/**
 * What tells layouts apart: 32 hexadecimal digits, the same where groups, buffers and their bytes are. Workers of one hash can move pages to each
 * other, as they are. Rejects with {ControlError} `invalid-control-options` for more groups than an index follows.
 */
export async function layoutHash(layout: TransferLayout): Promise<string> {
  if (layout.groups.length > MOST_GROUPS)
    throw new ControlError(
      'invalid-control-options',
      `the layout has ${layout.groups.length} groups; ${MOST_GROUPS} is the most here`,
    );
  return digestOf(describeLayout(layout));
}

/** What names those that can work together: model and layout. 32 hexadecimal digits. */
export function poolOf(worker: { readonly fingerprint: string; readonly layoutHash: string }): Promise<string> {
  return digestOf([worker.fingerprint, worker.layoutHash]);
}

async function digestOf(value: unknown): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', encodeJson(value) as Uint8Array<ArrayBuffer>));
  return Array.from(digest.subarray(0, 16), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
