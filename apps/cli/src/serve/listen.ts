import { CliError } from '../cli-error.ts';
import { type AnswerServer, openServer, type ServerOptions } from './server.ts';

/** Listens, or says in one line why that cannot be. Throws {CliError}. */
export async function listen(options: ServerOptions, at: { host: string; port: number }): Promise<AnswerServer> {
  try {
    return await openServer(options, at);
  } catch (cause) {
    const { code, syscall } = cause as NodeJS.ErrnoException;
    if (syscall !== 'listen' && syscall !== 'getaddrinfo') throw cause;
    throw new CliError(`cannot listen on ${at.host} port ${at.port}: ${code}; choose others with --host and --port`);
  }
}
