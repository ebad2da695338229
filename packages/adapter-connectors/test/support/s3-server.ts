import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export const REGION = 'eu-test-1';
export const ACCESS_KEY_ID = 'AKTEST';
export const SECRET_ACCESS_KEY = 'secret/of+the+test';
const MAX_CLOCK_DRIFT_MS = 15 * 60_000;

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest('hex');
const hmac = (key: string | Buffer, data: string) => createHmac('sha256', key).update(data).digest();
const encoded = (text: string) =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

/**
 * One bucket of S3 in memory, as strict as the real one about signatures: written from the description of signature version 4, not from
 * the library under test. Conditional writes, lists in pieces, and faults on demand.
 */
export class S3Server {
  readonly objects = new Map<string, Buffer>();
  /** Requests whose signature was wrong, by why. */
  readonly forged: string[] = [];
  /** Looks at a request first; true when it has dealt with it. */
  fault: (request: IncomingMessage, response: ServerResponse) => boolean = () => false;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (piece) => pieces.push(piece));
      request.on('end', () => this.#serve(request, response, Buffer.concat(pieces)));
    });
  }

  static async start(): Promise<S3Server> {
    const server = new S3Server();
    await new Promise<void>((resolve) => void server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get bucketUrl(): string {
    return `http://127.0.0.1:${this.port}/pages`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => void this.#server.close(() => resolve()));
  }

  #serve(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    if (this.fault(request, response)) return;
    const url = new URL(request.url ?? '', this.bucketUrl);
    const wrong = whatIsWrong(request, url, body);
    if (wrong !== undefined) {
      this.forged.push(wrong);
      answer(response, 403, `<Error><Code>SignatureDoesNotMatch</Code><Message>${wrong}</Message></Error>`);
      return;
    }
    const key = url.pathname.replace(/^\/pages\/?/, '');
    const object = this.objects.get(key);
    if (key === '') answer(response, 200, this.#list(url.searchParams));
    else if (request.method === 'PUT') {
      if (request.headers['if-none-match'] === '*' && object !== undefined) answer(response, 412);
      else {
        this.objects.set(key, body);
        answer(response, 200);
      }
    } else if (request.method === 'DELETE') {
      this.objects.delete(key);
      answer(response, 204);
    } else if (object === undefined) answer(response, 404, '<Error><Code>NoSuchKey</Code></Error>');
    else answer(response, 200, object);
  }

  #list(query: URLSearchParams): string {
    const after = query.get('continuation-token') ?? '';
    const names = [...this.objects.keys()].sort().filter((name) => name.startsWith(query.get('prefix') ?? '') && name > after);
    const piece = names.slice(0, Number(query.get('max-keys')));
    const more = piece.length < names.length;
    const next = more ? `<NextContinuationToken>${piece.at(-1)}</NextContinuationToken>` : '';
    return `<ListBucketResult><IsTruncated>${more}</IsTruncated>${next}${piece.map((name) => `<Contents><Key>${name}</Key></Contents>`).join('')}</ListBucketResult>`;
  }
}

function answer(response: ServerResponse, status: number, body: string | Buffer = ''): void {
  response.writeHead(status, { 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

function whatIsWrong({ method = '', headers }: IncomingMessage, url: URL, body: Buffer): string | undefined {
  const form =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/;
  const [, accessKeyId, day, region, names, signature] = form.exec(headers.authorization ?? '') ?? [];
  if (signature === undefined) return 'no authorization of version 4';
  if (accessKeyId !== ACCESS_KEY_ID || region !== REGION) return 'unknown key or region';
  const signed = names.split(';');
  const needed = ['host', 'x-amz-date', 'x-amz-content-sha256', ...(headers['if-none-match'] ? ['if-none-match'] : [])];
  for (const name of needed) if (!signed.includes(name)) return `${name} is not signed`;
  const hash = String(headers['x-amz-content-sha256']);
  if (hash !== sha256(body)) return 'the body is another';
  const date = String(headers['x-amz-date']);
  const time = Date.parse(date.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5'));
  if (!(Math.abs(Date.now() - time) < MAX_CLOCK_DRIFT_MS) || !date.startsWith(day)) return 'the date is off';
  const query = [...url.searchParams].map(([name, value]) => `${encoded(name)}=${encoded(value)}`).sort();
  const canonical = [
    method,
    url.pathname.split('/').map(encoded).join('/'),
    query.join('&'),
    ...signed.map((name) => `${name}:${String(headers[name] ?? '').trim()}`),
    '',
    names,
    hash,
  ].join('\n');
  const scope = `${day}/${REGION}/s3/aws4_request`;
  const key = ['s3', 'aws4_request'].reduce(hmac, hmac(hmac(`AWS4${SECRET_ACCESS_KEY}`, day), REGION));
  const expected = hmac(key, ['AWS4-HMAC-SHA256', date, scope, sha256(canonical)].join('\n')).toString('hex');
  return signature === expected ? undefined : 'the signature is another';
}
