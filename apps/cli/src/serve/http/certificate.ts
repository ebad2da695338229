import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { CliError, UsageError } from '../../cli-error.ts';

/** What a server shows who it is with, in PEM. */
export interface Certificate {
  /** Those that signed it may stand behind it. */
  readonly cert: string;
  readonly key: string;
}

/**
 * Reads the files of `--tls-cert` and `--tls-key`.
 *
 * @throws {UsageError} when only one is named; {CliError} when a file cannot be read, or the two do not belong together
 */
export async function readCertificate(certFile?: string, keyFile?: string): Promise<Certificate | undefined> {
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined || keyFile === undefined)
    throw new UsageError('--tls-cert and --tls-key belong together; name both files');
  const [cert, key] = await Promise.all([readPem('tls-cert', certFile), readPem('tls-key', keyFile)]);
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    throw new CliError(
      `${certFile} and ${keyFile} are no certificate with its key: ${(cause as Error).message}; both are PEM, the key without a password`,
    );
  }
  return { cert, key };
}

async function readPem(flag: string, path: string): Promise<string> {
  return readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new CliError(`cannot read ${path}: ${cause.code ?? cause}. --${flag} takes a file in PEM`);
  });
}
