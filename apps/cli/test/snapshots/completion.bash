# bufferwise: completions for bash. Put this into ~/.bashrc: source <(bufferwise completion bash)
_bufferwise() {
  local word="${COMP_WORDS[COMP_CWORD]}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="plan replay generate serve prefix demo bench doctor completion --help"
  else
    case "${COMP_WORDS[1]} ${COMP_WORDS[COMP_CWORD - 1]}" in
      "plan --memory") words="" ;;
      "plan --tokens-per-block") words="" ;;
      "plan --variant") words="whole split" ;;
      "plan --kv-dtype") words="f32 f16 bf16 f8 i8" ;;
      "plan --state-dtype") words="f32 f16 bf16 f8 i8" ;;
      "plan --replay-tokens") words="" ;;
      "plan --lengths") words="" ;;
      "plan --typical") words="" ;;
      "plan --prefill-chunk") words="" ;;
      "plan --advise") words="" ;;
      "plan --requests") words="" ;;
      "plan --svg") words="" ;;
      "replay --format") words="mooncake claude-code lmcache azure" ;;
      "replay --memory") words="" ;;
      "replay --host") words="" ;;
      "replay --disk") words="" ;;
      "replay --mix") words="" ;;
      "replay --model") words="" ;;
      "replay --variant") words="whole split" ;;
      "replay --policies") words="" ;;
      "replay --eviction") words="cost-aware lru" ;;
      "replay --tokens-per-block") words="" ;;
      "replay --running") words="" ;;
      "replay --snapshot-every") words="" ;;
      "replay --rebalance") words="" ;;
      "replay --compare") words="" ;;
      "replay --requests") words="" ;;
      "replay --skip") words="" ;;
      "replay --max-prompt") words="" ;;
      "replay --sessions") words="" ;;
      "replay --turns") words="" ;;
      "replay --svg") words="" ;;
      "replay --html") words="" ;;
      "generate --model") words="" ;;
      "generate --prompts") words="" ;;
      "generate --max-new-tokens") words="" ;;
      "generate --memory") words="" ;;
      "generate --memory-mib") words="" ;;
      "generate --policies") words="" ;;
      "generate --drafts") words="" ;;
      "generate --store") words="" ;;
      "generate --store-memory") words="" ;;
      "generate --store-near") words="" ;;
      "serve --host") words="" ;;
      "serve --port") words="" ;;
      "serve --name") words="" ;;
      "serve --chat-template") words="" ;;
      "serve --api-key") words="" ;;
      "serve --api-keys") words="" ;;
      "serve --cors-origin") words="" ;;
      "serve --tls-cert") words="" ;;
      "serve --tls-key") words="" ;;
      "serve --memory") words="" ;;
      "serve --host-memory") words="" ;;
      "serve --policies") words="" ;;
      "serve --drafts") words="" ;;
      "serve --store") words="" ;;
      "serve --store-memory") words="" ;;
      "serve --store-near") words="" ;;
      "serve --role") words="" ;;
      "serve --nats") words="" ;;
      "serve --cluster-key") words="" ;;
      "serve --pages") words="" ;;
      "serve --pages-as") words="" ;;
      "serve --prefill-from") words="" ;;
      "serve --prefill-timeout") words="" ;;
      "serve --max-active") words="" ;;
      "serve --max-queue") words="" ;;
      "serve --max-tokens") words="" ;;
      "serve --max-body") words="" ;;
      "serve --request-timeout") words="" ;;
      "serve --stall-timeout") words="" ;;
      "serve --drain-timeout") words="" ;;
      "prefix --model") words="" ;;
      "prefix --prompts") words="" ;;
      "prefix --prompt") words="" ;;
      "prefix --encoding") words="compressed plain int8" ;;
      "prefix --salt") words="" ;;
      "prefix --store") words="" ;;
      "prefix --store-memory") words="" ;;
      "prefix --store-near") words="" ;;
      "prefix --memory") words="" ;;
      "demo --model") words="" ;;
      "demo --max-new-tokens") words="" ;;
      "demo --memory") words="" ;;
      "demo --memory-mib") words="" ;;
      "demo --store") words="" ;;
      "bench --out") words="" ;;
      "bench --compare") words="" ;;
      "bench --tolerance") words="" ;;
      *)
        case "${COMP_WORDS[1]}" in
          plan) words="--memory --tokens-per-block --variant --kv-dtype --state-dtype --replay-tokens --lengths --typical --prefill-chunk --scratch --advise --requests --json --svg --help llama-3.1-8b mistral-7b-v0.1 phi-3-mini-4k qwen3-8b gemma-2-9b gemma-3-4b gpt-oss-20b jamba-v0.1 nemotron-h-8b granite-4.0-h-small qwen3-next-80b-a3b falcon-h1-7b mamba2-2.7b deepseek-v3 deepseek-v3.2" ;;
          replay) words="--format --memory --host --disk --mix --model --variant --policies --eviction --tokens-per-block --running --snapshot-every --rebalance --compare --requests --skip --max-prompt --sessions --turns --json --svg --html --help" ;;
          generate) words="--model --prompts --max-new-tokens --memory --memory-mib --policies --drafts --store --store-memory --store-near --store-compress --store-int8 --json --help" ;;
          serve) words="--host --port --name --chat-template --api-key --api-keys --cors-origin --tls-cert --tls-key --memory --host-memory --policies --drafts --store --store-memory --store-near --store-compress --store-int8 --role --nats --cluster-key --pages --pages-as --prefill-from --prefill-timeout --max-active --max-queue --max-tokens --max-body --request-timeout --stall-timeout --drain-timeout --json --help" ;;
          prefix) words="--model --prompts --prompt --encoding --salt --store --store-memory --store-near --store-compress --store-int8 --memory --verify --json --help export inspect import" ;;
          demo) words="--model --max-new-tokens --memory --memory-mib --store --json --help" ;;
          bench) words="--json --out --compare --tolerance --help" ;;
          doctor) words="--json --help" ;;
          completion) words="--json --help bash zsh fish" ;;
        esac ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _bufferwise bufferwise
