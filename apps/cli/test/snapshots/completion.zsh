#compdef bufferwise
# bufferwise: completions for zsh. Put this into ~/.zshrc: source <(bufferwise completion zsh)
_bufferwise() {
  local -a commands
  commands=(
    'plan:What a cache for a model takes: groups, bytes a token, requests that fit, what split policies buy'
    'replay:Serve a trace of requests on a cache without bytes: hit rates, evictions, traffic between tiers'
    'generate:Answer prompts in order, each reusing what the earlier ones left in the cache'
    'serve:Answer over HTTP as OpenAI’s interface does, many requests at a time on one cache'
    'prefix:Carry the prepared prefix of a prompt in a file: export it, inspect it, import it elsewhere'
    'demo:Three requests on a hybrid model, with reuse and without, and a second process that goes on from the first'
    'bench:The repository'\''s benches: figures as tables or a report, held against a saved one'
    'doctor:What will work on this machine, and how to mend the rest'
    'completion:Print a script that completes commands and options in your shell'
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
    plan)
      _arguments \
        '--memory[Device memory for all pages]:memory:' \
        '--tokens-per-block[Tokens in a block]:tokens-per-block:' \
        '--variant[Every buffer required, or what is cheap to have again not]:variant:(whole split)' \
        '--kv-dtype[How keys and values are stored]:kv-dtype:(f32 f16 bf16 f8 i8)' \
        '--state-dtype[How recurrent state is stored]:state-dtype:(f32 f16 bf16 f8 i8)' \
        '--replay-tokens[Tokens of a replay ring beside recurrent state; else 16 in split, 0 in whole]:replay-tokens:' \
        '--lengths[Lengths of requests in tokens]:lengths:' \
        '--typical[Length that memory is shared out for; else the middle one]:typical:' \
        '--prefill-chunk[Tokens of a prefill step, for scratch]:prefill-chunk:' \
        '--scratch[Let blocks that leave a window within a step share slots]' \
        '--advise[Serve a trace with each choice of policies instead, and say which is best; --variant split has replay rings]:advise:' \
        '--requests[With --advise  requests of the trace to serve; else all]:requests:' \
        '--json[Print one JSON object]' \
        '--svg[Draw it into a file as well]:svg:_files' \
        '--help[What the command does, with examples]' \
        '*: :{ compadd -- llama-3.1-8b mistral-7b-v0.1 phi-3-mini-4k qwen3-8b gemma-2-9b gemma-3-4b gpt-oss-20b jamba-v0.1 nemotron-h-8b granite-4.0-h-small qwen3-next-80b-a3b falcon-h1-7b mamba2-2.7b deepseek-v3 deepseek-v3.2; _files }' ;;
    replay)
      _arguments \
        '--format[The format, when you know better]:format:(mooncake claude-code lmcache azure)' \
        '--memory[Device memory for all pages]:memory:' \
        '--host[Host memory for pages that leave the device; is really taken]:host:' \
        '--disk[A disk behind that, which keeps no bytes either]:disk:' \
        '--mix[Layers  full, window N, state, with + between. 1 KiB a token each, a state 512 KiB]:mix:' \
        '--model[Layers of a model instead of a mix  as for plan]:model:_files' \
        '--variant[With --model  policies as plan has them]:variant:(whole split)' \
        '--policies[ROLE=POLICY between commas; roles of a mix are full_kv, window_kv, ssm_state]:policies:' \
        '--eviction[Which page leaves first]:eviction:(cost-aware lru)' \
        '--tokens-per-block[Tokens in a block]:tokens-per-block:' \
        '--running[Requests that run at a time, at most]:running:' \
        '--snapshot-every[Tokens between snapshots of state]:snapshot-every:' \
        '--rebalance[Requests between two attempts to move memory between pools; 0  never]:rebalance:' \
        '--compare[A second setting  flags above that differ, as "eviction=lru memory=512MiB"]:compare:' \
        '--requests[Requests to serve; else all]:requests:' \
        '--skip[Requests to leave out at the beginning]:skip:' \
        '--max-prompt[Leave longer prompts out, in tokens]:max-prompt:' \
        '--sessions[Of a trace of sessions  the first N that are long enough]:sessions:' \
        '--turns[Of such a trace  the first N requests of each session]:turns:' \
        '--json[Print one JSON object]' \
        '--svg[Draw hit rates over time into a file as well]:svg:_files' \
        '--html[The same as a page with the figures]:html:_files' \
        '--help[What the command does, with examples]' \
        '*:file:_files' ;;
    generate)
      _arguments \
        '--model[A GGUF file, or a folder with config.json, tokenizer.json and model.safetensors; else the demo model]:model:_files' \
        '--prompts[Prompts, one a line  {"text"  …} or {"ids"   … }]:prompts:_files' \
        '--max-new-tokens[Tokens to generate for each prompt]:max-new-tokens:' \
        '--memory[Memory for all pages]:memory:' \
        '--memory-mib[The same in MiB; goes before --memory]:memory-mib:' \
        '--policies[Reuse policies  auto, or ROLE=POLICY between commas; else as the model has them]:policies:' \
        '--drafts[Tokens to guess ahead from what was said before; changes no answer]:drafts:' \
        '--store[Where prefixes are kept and found, also by the next process  a folder, redis //HOST PORT (several between commas  a cluster), s3 //BUCKET]:store:_files' \
        '--store-memory[Bytes that a folder may take]:store-memory:' \
        '--store-near[Bytes of pages kept in memory before the store]:store-near:' \
        '--store-compress[Compress pages in the store; changes no answer]' \
        '--store-int8[Keep keys and values in 8 bits in the store, compressed  answers may differ a little]' \
        '--json[Print one JSON object for each prompt instead of text]' \
        '--help[What the command does, with examples]' \
        '*:file:_files' ;;
    serve)
      _arguments \
        '--host[Address to listen on]:host:' \
        '--port[Port to listen on; 0 takes any that is free]:port:' \
        '--name[Name of the model; else that of its file]:name:' \
        '--chat-template[Jinja file that makes a prompt of a conversation; else that of the model, else plain lines]:chat-template:_files' \
        '--api-key[Key that opens the server; others see it in the list of processes]:api-key:' \
        '--api-keys[Keys that open it, one a line. Each key has a cache of its own]:api-keys:_files' \
        '--cors-origin[Origins whose pages may use the server, between commas; * for all]:cors-origin:' \
        '--tls-cert[Certificate, with which it speaks HTTPS; with --tls-key]:tls-cert:_files' \
        '--tls-key[Key of the certificate, without a password]:tls-key:_files' \
        '--memory[Device memory for all pages]:memory:' \
        '--host-memory[Memory for pages that leave the device; else they are dropped]:host-memory:' \
        '--policies[Reuse policies  auto, or ROLE=POLICY between commas; else as the model has them]:policies:' \
        '--drafts[Tokens to guess ahead from what was said before; changes no answer]:drafts:' \
        '--store[Where prefixes are kept and found, also by the next process  a folder, redis //HOST PORT (several between commas  a cluster), s3 //BUCKET]:store:_files' \
        '--store-memory[Bytes that a folder may take]:store-memory:' \
        '--store-near[Bytes of pages kept in memory before the store]:store-near:' \
        '--store-compress[Compress pages in the store; changes no answer]' \
        '--store-int8[Keep keys and values in 8 bits in the store, compressed  answers may differ a little]' \
        '--role[What it does of a request  read prompts for others, answer, or both]:role:' \
        '--nats[NATS server over which workers of one model find each other,  USER PASSWORD@ HOST PORT; else it works alone]:nats:' \
        '--cluster-key[File with the secret that all workers share, 16 bytes or more]:cluster-key:_files' \
        '--pages[Where prompts arrive that others have read; port 0 takes any that is free. Default 127.0.0.1 0]:pages:' \
        '--pages-as[Where others reach --pages, if not under that very address]:pages-as:' \
        '--prefill-from[Tokens of a prompt beyond the cache from which on another worker reads it. Default 256]:prefill-from:' \
        '--prefill-timeout[Time after which a prompt that did not arrive is read here. Default 30s]:prefill-timeout:' \
        '--max-active[Answers computed at a time]:max-active:' \
        '--max-queue[Answers that may wait besides; more get 429]:max-queue:' \
        '--max-tokens[Tokens of a chat answer for which the request has no number]:max-tokens:' \
        '--max-body[Bytes of a request]:max-body:' \
        '--request-timeout[Time in which a request must have arrived]:request-timeout:' \
        '--stall-timeout[Time after which a reader who takes nothing is cut off]:stall-timeout:' \
        '--drain-timeout[Time that answers under way have once the server is told to stop]:drain-timeout:' \
        '--json[Print where it listens as one JSON object]' \
        '--help[What the command does, with examples]' \
        '*:file:_files' ;;
    prefix)
      _arguments \
        '--model[Whose prefix  a GGUF file, or a folder with config.json, tokenizer.json and model.safetensors; else the demo model]:model:_files' \
        '--prompts[export  prompts, one a line, {"text"  …} or {"ids"   … }]:prompts:_files' \
        '--prompt[export  which of them, counted from 1]:prompt:' \
        '--encoding[export  how the file keeps pages]:encoding:(compressed plain int8)' \
        '--salt[Whole number that keeps tenants apart; of the export, and the same of the import]:salt:' \
        '--store[A folder or an address, as of generate. export  looked into first, and what is computed is kept there; import  where the prefix goes]:store:_files' \
        '--store-memory[Bytes that a folder may take]:store-memory:' \
        '--store-near[Bytes of pages kept in memory before the store]:store-near:' \
        '--store-compress[Compress pages in the store; changes no answer]' \
        '--store-int8[Keep keys and values in 8 bits in the store, compressed  answers may differ a little]' \
        '--memory[Memory for all pages]:memory:' \
        '--verify[inspect  read the whole file, and check every page]' \
        '--json[Print one JSON object]' \
        '--help[What the command does, with examples]' \
        '*: :{ compadd -- export inspect import; _files }' ;;
    demo)
      _arguments \
        '--model[Folder of a model like the demo model, which is the default]:model:_files' \
        '--max-new-tokens[Tokens to generate for each request]:max-new-tokens:' \
        '--memory[Memory for all pages]:memory:' \
        '--memory-mib[The same in MiB; goes before --memory]:memory-mib:' \
        '--store[What both processes keep prefixes in, as of generate; else a folder that goes with the demo]:store:_files' \
        '--json[Print one JSON object instead of the story]' \
        '--help[What the command does, with examples]' \
        '*:file:_files' ;;
    bench)
      _arguments \
        '--json[Print the report as one JSON object]' \
        '--out[Write the report into a file]:out:_files' \
        '--compare[A report to hold the figures against; code 1 when one is worse by more than the tolerance]:compare:_files' \
        '--tolerance[Part by which a figure may be worse  0.25 lets 100 ms become 125]:tolerance:' \
        '--help[What the command does, with examples]' \
        '*:file:_files' ;;
    doctor)
      _arguments \
        '--json[Print one JSON object]' \
        '--help[What the command does, with examples]' \
        '*:file:_files' ;;
    completion)
      _arguments \
        '--json[Print {"shell", "script"} instead of the script alone]' \
        '--help[What the command does, with examples]' \
        '*: :{ compadd -- bash zsh fish; _files }' ;;
  esac
}
compdef _bufferwise bufferwise
