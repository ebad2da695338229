import { HybridEngine } from '@bufferwise/hybrid-engine';
import { defineCommand } from '../command/command.ts';
import { openDevice } from '../gpu/open-device.ts';
import { byteSize, duration, wholeNumber } from '../input/arguments.ts';
import { ENGINE_ARGS } from '../input/engine-args.ts';
import { DEMO_MODEL_FOLDER } from '../input/model-folder.ts';
import { parsePolicies } from '../input/policies.ts';
import { openPrefixStore, type PrefixStore } from '../input/prefix-store.ts';
import { STORE_ENCODING_ARGS, storeEncoding } from '../input/store-encoding.ts';
import { readApiKeys } from '../serve/http/api-keys.ts';
import { readCertificate } from '../serve/http/certificate.ts';
import { parseOrigins } from '../serve/http/cross-origin.ts';
import { listen } from '../serve/listen.ts';
import { readServedModel } from '../serve/model/served-model.ts';
import { ClusterMember } from '../serve/roles/cluster-member.ts';
import { EventRelay } from '../serve/roles/event-relay.ts';
import { clusterChoice, doubtOf, ROLE_ARGS } from '../serve/roles/role-args.ts';
import type { AnswerServer } from '../serve/server.ts';
import { waitForStop } from '../serve/wait-for-stop.ts';
import { parseStoreAddress } from '../store/store-address.ts';
import { STORE_ARGS, storeChoice } from '../store/store-args.ts';

/** How often the store is asked whether it is of any use. */
const TROUBLE_MS = 5_000;
const DAY_MS = 24 * 3_600_000;

/** Answers OpenAI's interface over HTTP until it is told to stop. */
export const serve = defineCommand({
  name: 'serve',
  summary: 'Answer over HTTP as OpenAI’s interface does, many requests at a time on one cache',
  args: {
    model: {
      type: 'positional',
      description: 'A GGUF file, or a folder with config.json, tokenizer.json and model.safetensors; else the demo model',
      required: false,
    },
    host: { type: 'string', description: 'Address to listen on', valueHint: 'ADDRESS', default: '127.0.0.1' },
    port: { type: 'string', description: 'Port to listen on; 0 takes any that is free', valueHint: 'N', default: '8080' },
    name: { type: 'string', description: 'Name of the model; else that of its file', valueHint: 'NAME' },
    'chat-template': {
      type: 'string',
      description: 'Jinja file that makes a prompt of a conversation; else that of the model, else plain lines',
      valueHint: 'FILE',
    },
    'api-key': {
      type: 'string',
      description: 'Key that opens the server; others see it in the list of processes',
      valueHint: 'KEY',
    },
    'api-keys': {
      type: 'string',
      description: 'Keys that open it, one a line. Each key has a cache of its own',
      valueHint: 'FILE',
    },
    'cors-origin': {
      type: 'string',
      description: 'Origins whose pages may use the server, between commas; * for all',
      valueHint: 'ORIGIN,…',
    },
    'tls-cert': { type: 'string', description: 'Certificate, with which it speaks HTTPS; with --tls-key', valueHint: 'FILE' },
    'tls-key': { type: 'string', description: 'Key of the certificate, without a password', valueHint: 'FILE' },
    memory: { type: 'string', description: 'Device memory for all pages', valueHint: 'SIZE', default: '64MiB' },
    'host-memory': {
      type: 'string',
      description: 'Memory for pages that leave the device; else they are dropped',
      valueHint: 'SIZE',
    },
    ...ENGINE_ARGS,
    ...STORE_ARGS,
    ...STORE_ENCODING_ARGS,
    ...ROLE_ARGS,
    'max-active': { type: 'string', description: 'Answers computed at a time', valueHint: 'N', default: '32' },
    'max-queue': { type: 'string', description: 'Answers that may wait besides; more get 429', valueHint: 'N', default: '128' },
    'max-tokens': {
      type: 'string',
      description: 'Tokens of a chat answer for which the request has no number',
      valueHint: 'N',
      default: '1024',
    },
    'max-body': { type: 'string', description: 'Bytes of a request', valueHint: 'SIZE', default: '1MiB' },
    'request-timeout': {
      type: 'string',
      description: 'Time in which a request must have arrived',
      valueHint: 'TIME',
      default: '30s',
    },
    'stall-timeout': {
      type: 'string',
      description: 'Time after which a reader who takes nothing is cut off',
      valueHint: 'TIME',
      default: '30s',
    },
    'drain-timeout': {
      type: 'string',
      description: 'Time that answers under way have once the server is told to stop',
      valueHint: 'TIME',
      default: '30s',
    },
    json: { type: 'boolean', description: 'Print where it listens as one JSON object', default: false },
  },
  examples: [
    { what: 'The demo model on port 8080', line: 'bufferwise serve' },
    {
      what: 'A model for several people, whose prompts stay apart, on all addresses',
      line: 'bufferwise serve model.gguf --host 0.0.0.0 --api-keys keys.txt --memory 2GiB',
    },
    {
      what: 'Keep prefixes over restarts',
      line: 'bufferwise serve model.gguf --store ~/.cache/bufferwise/prefixes',
    },
    {
      what: 'One worker that reads long prompts, for others that answer with --role decode',
      line: 'bufferwise serve model.gguf --role prefill --nats nats://control:4222 --cluster-key shared.key',
    },
  ],
  async run(given, terminal) {
    const whole = (name: string, text: string, min: number, max: number) => wholeNumber(name, text, { min, max });
    const at = { host: given.host, port: whole('port', given.port, 0, 65_535) };
    const deviceBytes = byteSize('memory', given.memory);
    const hostBytes = given['host-memory'] === undefined ? 0 : byteSize('host-memory', given['host-memory']);
    const policies = given.policies === undefined ? undefined : parsePolicies(given.policies);
    const maxDrafts = whole('drafts', given.drafts, 0, 64);
    const address = given.store === undefined ? undefined : parseStoreAddress(given.store);
    const choice = storeChoice(given);
    const encoding = storeEncoding(given);
    const maxActive = whole('max-active', given['max-active'], 1, 1024);
    const limits = {
      maxActive,
      maxQueue: whole('max-queue', given['max-queue'], 0, 100_000),
      maxBodyBytes: byteSize('max-body', given['max-body']),
      requestMs: duration('request-timeout', given['request-timeout'], { max: DAY_MS }),
      stallMs: duration('stall-timeout', given['stall-timeout'], { max: DAY_MS }),
    };
    const drainMs = duration('drain-timeout', given['drain-timeout'], { max: DAY_MS });
    const defaultMaxTokens = whole('max-tokens', given['max-tokens'], 1, 1_000_000);
    const origins = given['cors-origin'] === undefined ? [] : parseOrigins(given['cors-origin']);
    const certificate = await readCertificate(given['tls-cert'], given['tls-key']);
    const keys = await readApiKeys(given['api-key'] ?? process.env.BUFFERWISE_API_KEY, given['api-keys']);
    const cluster = await clusterChoice(given, process.env);
    const options = { id: given.name, templateFile: given['chat-template'] };
    const model = await readServedModel(given.model ?? DEMO_MODEL_FOLDER, options);
    const { device } = await openDevice();
    let store: PrefixStore | undefined;
    let engine: HybridEngine | undefined;
    let member: ClusterMember | undefined;
    let server: AnswerServer | undefined;
    const tellTrouble = () => {
      const words = store?.trouble();
      if (words !== undefined) terminal.tell(`bufferwise serve: ${words}\n`);
    };
    const watching = setInterval(tellTrouble, TROUBLE_MS);
    try {
      if (address !== undefined) store = await openPrefixStore(address, choice, model.engineModel, encoding);
      tellTrouble();
      const events = new EventRelay();
      engine = await HybridEngine.create({
        model: model.engineModel,
        device,
        cache: { deviceBytes, hostBytes, policies },
        maxActive,
        speculation: maxDrafts === 0 ? undefined : { maxDrafts },
        outside: store,
        ...(cluster !== null && { events }),
      });
      const onTrouble = (words: string) => terminal.tell(`bufferwise serve: ${words}\n`);
      if (cluster !== null) {
        const doubt = doubtOf(cluster);
        if (doubt !== null) onTrouble(doubt);
        member = await ClusterMember.join(cluster, { engine, events, maxActive, onTrouble });
      }
      const onBug = (error: unknown) => terminal.tell(`${error instanceof Error ? error.stack : error}\n`);
      const stop = waitForStop(terminal.signal);
      const storeStatistics = store?.statistics;
      const answers = member?.answers;
      const security = { keys, certificate, origins };
      server = await listen(
        { engine, answers, cluster: member, model, ...security, limits, defaultMaxTokens, storeStatistics, onBug },
        at,
      );
      const where =
        answers === null ? `${model.id} reads prompts for others: ${server.url}/health` : `${model.id} on ${server.url}/v1`;
      terminal.print(given.json ? `${JSON.stringify({ url: server.url, model: model.id })}\n` : `${where}\n`);
      // One that only reads is of no use to anybody whom it cannot hear.
      const code = await (answers === null ? Promise.race([stop, member?.lost.then(() => 1) ?? stop]) : stop);
      terminal.tell('stopping: answers under way may end\n');
      const [numCut] = await Promise.all([server.drain(drainMs), member?.drain(drainMs)]);
      if (numCut > 0)
        terminal.tell(`${numCut} ${numCut === 1 ? 'request was' : 'requests were'} cut off: --drain-timeout is over\n`);
      await server.close();
      await member?.close();
      await engine.saved();
      return numCut > 0 ? 1 : code;
    } finally {
      clearInterval(watching);
      await server?.close();
      await member?.close();
      await engine?.close();
      await store?.close();
      device.destroy();
    }
  },
});
