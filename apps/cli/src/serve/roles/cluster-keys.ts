import { hkdfSync } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { CliError, UsageError } from '../../cli-error.ts';

/** Secrets that all workers derive from the one they share, so that what proves one thing proves no other. */
export interface ClusterKeys {
  /** Of the links that pages travel over. */
  readonly pages: Uint8Array;
  /** Of messages over NATS. */
  readonly control: Uint8Array;
}

const LEAST_BYTES = 16;
/** Of a file: what is longer is no secret but something else, perhaps without an end. */
const MOST_BYTES = 4096;
const DERIVED_BYTES = 32;

/**
 * Reads the secret from a file, or else takes it from the environment; line breaks at its end do not count.
 *
 * @throws {UsageError} when there is none, or a short one; {CliError} when the file cannot be read, or is no file with a secret
 */
export async function readClusterKeys(path: string | undefined, text: string | undefined): Promise<ClusterKeys> {
  const shared = withoutLineBreaks(path === undefined ? Buffer.from(text ?? '') : await bytesOf(path));
  if (shared.length < LEAST_BYTES)
    throw new UsageError(
      `workers prove to each other that they belong together: give --cluster-key a file with ${LEAST_BYTES} random bytes or more, the same for all`,
    );
  const derive = (purpose: string) => new Uint8Array(hkdfSync('sha256', shared, '', `bufferwise ${purpose}`, DERIVED_BYTES));
  return { pages: derive('pages'), control: derive('control') };
}

async function bytesOf(path: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  try {
    // `end` is the last byte that is read: one too many, where there are as many.
    for await (const chunk of createReadStream(path, { end: MOST_BYTES })) chunks.push(chunk);
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code ?? cause;
    throw new CliError(`cannot read ${path}: ${why}. --cluster-key takes a file with the secret of all workers`);
  }
  const bytes = Buffer.concat(chunks);
  if (bytes.length > MOST_BYTES)
    throw new CliError(`${path} has more than ${MOST_BYTES} bytes. --cluster-key takes a file with the secret of all workers`);
  return bytes;
}

function withoutLineBreaks(bytes: Buffer): Buffer {
  let end = bytes.length;
  while (end > 0 && (bytes[end - 1] === 0x0a || bytes[end - 1] === 0x0d)) end--;
  return bytes.subarray(0, end);
}
