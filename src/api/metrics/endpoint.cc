#include "api/metrics/endpoint.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <utility>

namespace lockstep {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Collects families whose metrics all carry the same base labels.
class Page {
 public:
  void SetModel(const std::string& id) { labels_ = {{"model_name", id}}; }

  void Gauge(std::string name, std::string help, double value) {
    ClientMetric metric = Labelled();
    metric.gauge.value = value;
    Add(std::move(name), std::move(help), MetricType::Gauge).metric.push_back(std::move(metric));
  }

  // Several values of one gauge, told apart by a label.
  void GaugeFamily(std::string name, std::string help) {
    Add(std::move(name), std::move(help), MetricType::Gauge);
  }
  void GaugeValue(std::string label, std::string label_value, double value) {
    ClientMetric metric = Labelled();
    metric.label.push_back({std::move(label), std::move(label_value)});
    metric.gauge.value = value;
    families_.back().metric.push_back(std::move(metric));
  }

  void Counter(std::string name, std::string help, double value) {
    CounterFamily(std::move(name), std::move(help));
    CounterValue({}, {}, value);
  }

  // Several values of one counter, told apart by a label.
  void CounterFamily(std::string name, std::string help) {
    Add(std::move(name), std::move(help), MetricType::Counter);
  }
  void CounterValue(std::string label, std::string label_value, double value) {
    ClientMetric metric = Labelled();
    if (!label.empty()) metric.label.push_back({std::move(label), std::move(label_value)});
    metric.counter.value = value;
    families_.back().metric.push_back(std::move(metric));
  }

  void Distribution(std::string name, std::string help, const Histogram& histogram) {
    ClientMetric metric = Labelled();
    metric.histogram.sample_count = histogram.count;
    metric.histogram.sample_sum = histogram.sum;
    uint64_t below = 0;
    for (size_t i = 0; i < histogram.bounds.size(); ++i) {
      below += histogram.counts[i];
      metric.histogram.bucket.push_back({below, histogram.bounds[i]});
    }
    metric.histogram.bucket.push_back({histogram.count, std::numeric_limits<double>::infinity()});
    Add(std::move(name), std::move(help), MetricType::Histogram)
        .metric.push_back(std::move(metric));
  }

  std::string Text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  ClientMetric Labelled() const {
    ClientMetric metric;
    metric.label = labels_;
    return metric;
  }
  MetricFamily& Add(std::string name, std::string help, MetricType type) {
    families_.push_back({std::move(name), std::move(help), type, {}});
    return families_.back();
  }

  std::vector<ClientMetric::Label> labels_;
  std::vector<MetricFamily> families_;
};

void AddHttp(const HttpCounters& http, Page* page) {
  page->Gauge("lockstep_http_connections_open", "Connections now open.",
              static_cast<double>(http.connections_open.load()));
  page->Counter("lockstep_http_connections_total", "Connections accepted.",
                static_cast<double>(http.connections.load()));
  page->Counter("lockstep_http_disconnects_total", "Clients that left before their answer ended.",
                static_cast<double>(http.disconnects.load()));
  page->CounterFamily("lockstep_http_responses_total", "Responses by class of status.");
  for (int digit = 1; digit <= 5; ++digit) {
    page->CounterValue("class", std::to_string(digit) + "xx",
                       static_cast<double>(http.responses[digit].load()));
  }
}

void AddPrefixStore(const EngineStats& stats, Page* page) {
  const auto number = [](auto value) { return static_cast<double>(value); };
  const PrefixStoreStats& store = *stats.prefix_store;
  page->Gauge("lockstep_prefix_disk_entries", "Files of prefixes.", number(store.entries));
  page->Gauge("lockstep_prefix_disk_bytes", "What they take.", number(store.bytes));
  page->Gauge("lockstep_prefix_disk_bytes_limit", "What they may take.", number(store.bytes_limit));
  page->Counter("lockstep_prefix_disk_hits_total", "Sequences that went on from a prefix on disk.",
                number(stats.prefix_transfer.hits));
  page->Counter("lockstep_prefix_disk_misses_total",
                "Sequences that found no more there than in memory.",
                number(stats.prefix_transfer.misses));
  page->Counter("lockstep_prefix_disk_tokens_total", "Prompt tokens that came from disk.",
                number(stats.prefix_transfer.tokens));
  page->Counter("lockstep_prefix_disk_restores_given_up_total",
                "Restores that found a file gone or no good.",
                number(stats.prefix_transfer.failures));
  page->Counter("lockstep_prefix_disk_written_bytes_total", "Bytes written.",
                number(store.written_bytes));
  page->Counter("lockstep_prefix_disk_read_bytes_total", "Bytes read.", number(store.read_bytes));
  page->Counter("lockstep_prefix_disk_writes_dropped_total",
                "Spans that left the cache before they could be written.",
                number(stats.prefix_writes_dropped));
  page->Counter("lockstep_prefix_disk_writes_failed_total", "Files that could not be written.",
                number(store.write_failures));
  page->Counter("lockstep_prefix_disk_corrupt_total",
                "Files that were not what they should be, and are gone.", number(store.corrupt));
  page->Counter("lockstep_prefix_disk_evictions_total", "Files that had to go for others.",
                number(store.evictions));
}

void AddEngine(const EngineStats& stats, Page* page) {
  const auto number = [](auto value) { return static_cast<double>(value); };
  page->Gauge("vllm:num_requests_running", "Sequences that run.", number(stats.running));
  page->Gauge("vllm:num_requests_waiting", "Requests that wait.", number(stats.waiting));
  page->Gauge("lockstep_requests_running_open_ended",
              "Sequences without max_tokens, which reserve the rest of the context.",
              number(stats.running_open_ended));
  page->GaugeFamily("lockstep_queue_waits_for", "1: what the first waiting request lacks.");
  page->GaugeValue("what", "row", stats.waits_for_row ? 1 : 0);
  page->GaugeValue("what", "memory", stats.waits_for_memory ? 1 : 0);
  page->Gauge("vllm:kv_cache_usage_perc", "Share of the KV budget that is reserved, 0 to 1.",
              stats.kv_bytes_budget > 0
                  ? number(stats.kv_bytes_reserved) / number(stats.kv_bytes_budget)
                  : 0.0);
  page->Gauge("lockstep_kv_bytes_budget", "KV cache bytes there are.",
              number(stats.kv_bytes_budget));
  page->Gauge("lockstep_kv_bytes_reserved", "KV cache bytes promised to admitted sequences.",
              number(stats.kv_bytes_reserved));
  page->Gauge("lockstep_kv_bytes_used", "KV cache bytes in blocks of running sequences.",
              number(stats.kv_bytes_used));
  page->Gauge("lockstep_kv_bytes_cached", "KV cache bytes kept for prefixes that nobody uses now.",
              number(stats.kv_bytes_cached));
  page->Counter("vllm:prompt_tokens_total", "Prompt tokens, computed or cached.",
                number(stats.prompt_tokens));
  page->Counter("vllm:generation_tokens_total", "Generated tokens.",
                number(stats.generated_tokens));
  page->Counter("vllm:prefix_cache_queries_total",
                "Prompt tokens that were looked for in the prefix cache.",
                number(stats.prefix_queries));
  page->Counter("vllm:prefix_cache_hits_total", "Those of them that were not computed again.",
                number(stats.cached_tokens));
  page->Counter("lockstep_prefix_cache_evictions_total",
                "Blocks of cached prefixes that had to go for others.",
                number(stats.prefix_evictions));
  if (stats.prefix_store) AddPrefixStore(stats, page);
  page->Counter("lockstep_requests_submitted_total", "Requests taken by the engine.",
                number(stats.submitted));
  page->CounterFamily("vllm:request_success_total", "Requests that finished, by reason.");
  page->CounterValue("finished_reason", "stop", number(stats.finished_stop));
  page->CounterValue("finished_reason", "length", number(stats.finished_length));
  page->CounterValue("finished_reason", "abort", number(stats.finished_cancelled));
  page->Counter("lockstep_requests_failed_total", "Requests that failed.",
                number(stats.finished_error));
  page->Counter("lockstep_steps_total", "Steps of the engine.", number(stats.steps));
  page->CounterFamily("lockstep_step_seconds_total", "Where the engine's time went.");
  page->CounterValue("part", "plan", stats.seconds_plan);
  page->CounterValue("part", "compute", stats.seconds_compute);
  page->CounterValue("part", "emit", stats.seconds_emit);
  page->CounterValue("part", "gap", stats.seconds_gap);
  page->Distribution("vllm:time_to_first_token_seconds", "From submission to the first token.",
                     stats.time_to_first_token);
  page->Distribution("vllm:inter_token_latency_seconds", "Between tokens of a sequence.",
                     stats.inter_token);
  page->Distribution("vllm:request_queue_time_seconds", "From submission to the first step.",
                     stats.queue_wait);
  page->Distribution("vllm:e2e_request_latency_seconds", "From submission to the end.",
                     stats.end_to_end);
}

}  // namespace

ApiResult HandleMetrics(const ApiContext& context, const ApiCall&) {
  Page page;
  AddHttp(*context.http, &page);
  if (context.model != nullptr) {
    page.SetModel(context.model->id);
    AddEngine(context.model->engine->stats(), &page);
  }
  ApiReply reply;
  reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
  reply.body = page.Text();
  return reply;
}

}  // namespace lockstep
