import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { gpuEnvironment } from '@bufferwise-internal/webgpu-node';
import { sourceModule } from '../../../../scripts/run/source-module.mjs';
import type { Answer, Question } from './question.ts';

/** An answering process, as a child of this one. */
export class Answerer {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  #said = '';

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.stderr?.on('data', (text) => {
      this.#said += text;
    });
    this.#lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  }

  static async start(): Promise<Answerer> {
    const program = await sourceModule(
      'packages/hybrid-engine',
      'answering-process',
      "import { answerQuestions } from './test/cluster/answering-process.ts'; await answerQuestions();",
    );
    const env = { ...process.env, ...(await gpuEnvironment()) };
    return new Answerer(spawn(process.execPath, [program], { env, stdio: 'pipe' }));
  }

  /** One question at a time. */
  async ask(question: Question): Promise<Answer> {
    this.#child.stdin?.write(`${JSON.stringify(question)}\n`);
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`The answering process ended: ${this.#said}`);
    return JSON.parse(value);
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const closed = new Promise((resolve) => this.#child.once('close', resolve));
    this.#child.stdin?.end();
    await closed;
  }
}
