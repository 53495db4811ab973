// MA-CC's dumbbell in ns-3: the reference that docs/fidelity.md compares the simulator with.
//
// Three senders, access links of 100 Mbps and 20 ms, a core of --rate Mbps and --delay ms with
// --queue packets and --loss at its receiving end, segments of 1448 bytes, delayed ACKs.
// Prints one line: key=value pairs of goodput, mean RTT, loss at the core and mean queue.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <iostream>

using namespace ns3;

static double rttSum = 0.0;
static uint64_t rttCount = 0;
static double queueSum = 0.0;
static uint64_t queueCount = 0;

static void
OnRtt(Time, Time rtt)
{
    rttSum += rtt.GetSeconds();
    ++rttCount;
}

static void
TraceRtt(uint32_t node)
{
    Config::ConnectWithoutContext("/NodeList/" + std::to_string(node) +
                                      "/$ns3::TcpL4Protocol/SocketList/0/RTT",
                                  MakeCallback(&OnRtt));
}

static void
SampleQueue(Ptr<QueueDisc> disc)
{
    queueSum += disc->GetNPackets();
    ++queueCount;
    Simulator::Schedule(MilliSeconds(10), &SampleQueue, disc);
}

int
main(int argc, char* argv[])
{
    std::string cc = "TcpCubic";
    std::string discipline = "droptail";
    double rate = 30.0;
    double delay = 100.0;
    double loss = 0.0003;
    double duration = 60.0;
    uint32_t queue = 385;
    uint32_t seed = 1;
    CommandLine cmd;
    cmd.AddValue("cc", "TcpNewReno, TcpCubic, TcpBbr, TcpVegas, TcpWestwoodPlus, TcpDctcp", cc);
    cmd.AddValue("queue-disc", "droptail, red, codel or pie", discipline);
    cmd.AddValue("rate", "core rate (Mbps)", rate);
    cmd.AddValue("delay", "core delay (ms)", delay);
    cmd.AddValue("loss", "packet error rate of the core", loss);
    cmd.AddValue("duration", "simulated time (s)", duration);
    cmd.AddValue("queue", "core queue (packets)", queue);
    cmd.AddValue("seed", "run number", seed);
    cmd.Parse(argc, argv);
    RngSeedManager::SetRun(seed);

    if (cc == "TcpWestwoodPlus")
    {
        // ns-3.37 has it as a variant of Westwood.
        cc = "TcpWestwood";
        Config::SetDefault("ns3::TcpWestwood::ProtocolType", StringValue("WestwoodPlus"));
    }
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::" + cc));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(8388608));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(8388608));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    if (cc == "TcpDctcp")
    {
        Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue("On"));
    }

    const uint32_t count = 3;
    NodeContainer senders, receivers, routers;
    senders.Create(count);
    receivers.Create(count);
    routers.Create(2);
    InternetStackHelper stack;
    stack.InstallAll();

    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    access.SetChannelAttribute("Delay", StringValue("20ms"));
    PointToPointHelper core;
    core.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate * 1e6))));
    core.SetChannelAttribute("Delay", TimeValue(MicroSeconds(uint64_t(delay * 1000))));
    core.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    NetDeviceContainer trunk = core.Install(routers.Get(0), routers.Get(1));
    Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
    errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
    errors->SetRate(loss);
    trunk.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));

    TrafficControlHelper control;
    QueueSizeValue size(QueueSize(QueueSizeUnit::PACKETS, queue));
    if (discipline == "red")
    {
        control.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", size, "MinTh", DoubleValue(96),
                                 "MaxTh", DoubleValue(288), "LInterm", DoubleValue(10),
                                 "QW", DoubleValue(0.002), "LinkBandwidth",
                                 DataRateValue(DataRate(uint64_t(rate * 1e6))));
    }
    else if (discipline == "codel")
    {
        control.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", size);
    }
    else if (discipline == "pie")
    {
        control.SetRootQueueDisc("ns3::PieQueueDisc", "MaxSize", size);
    }
    else
    {
        control.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", size);
    }
    QueueDiscContainer discs = control.Install(trunk.Get(0));

    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    addresses.Assign(trunk);
    Ptr<UniformRandomVariable> start = CreateObject<UniformRandomVariable>();
    ApplicationContainer sinks;
    for (uint32_t i = 0; i < count; ++i)
    {
        addresses.SetBase(("10.1." + std::to_string(i) + ".0").c_str(), "255.255.255.0");
        addresses.Assign(access.Install(senders.Get(i), routers.Get(0)));
        addresses.SetBase(("10.2." + std::to_string(i) + ".0").c_str(), "255.255.255.0");
        Ipv4InterfaceContainer far =
            addresses.Assign(access.Install(routers.Get(1), receivers.Get(i)));
        InetSocketAddress target(far.GetAddress(1), 5000);
        BulkSendHelper source("ns3::TcpSocketFactory", target);
        ApplicationContainer app = source.Install(senders.Get(i));
        double at = start->GetValue(0.0, 0.5);
        app.Start(Seconds(at));
        Simulator::Schedule(Seconds(at + 0.001), &TraceRtt, senders.Get(i)->GetId());
        PacketSinkHelper sink("ns3::TcpSocketFactory", target);
        sinks.Add(sink.Install(receivers.Get(i)));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Schedule(MilliSeconds(10), &SampleQueue, discs.Get(0));
    Simulator::Stop(Seconds(duration));
    Simulator::Run();

    uint64_t bytes = 0;
    for (uint32_t i = 0; i < sinks.GetN(); ++i)
    {
        bytes += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
    }
    const QueueDisc::Stats& stats = discs.Get(0)->GetStats();
    std::cout << "goodput_mbps=" << bytes * 8.0 / duration / 1e6
              << " rtt_ms=" << (rttCount ? rttSum / rttCount * 1e3 : 0.0) << " drop_rate="
              << double(stats.nTotalDroppedPackets) / (stats.nTotalReceivedPackets + 1)
              << " queue_packets=" << (queueCount ? queueSum / queueCount : 0.0) << std::endl;
    Simulator::Destroy();
    return 0;
}
